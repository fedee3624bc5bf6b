// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/openai/fields.h"

namespace winnow::server {

/// Unit of a field's size: bytes of a string, elements of a list, members of an object.
enum class SizeUnit : std::uint8_t { bytes, elements, members };

/// `bytes`, `elements` or `members`.
const char* name_of(SizeUnit unit);

/// The largest size of a field.
struct FieldLimit {
  std::string_view field;  ///< its path; `[]` stands for any element, `*` for all fields without a row
  SizeUnit unit;
  std::size_t most;
};

/// No limit besides the body's, for texts and tokens that the model reads: the context limits them.
inline constexpr std::size_t kWholeBody = static_cast<std::size_t>(-1);

/// The table of field sizes. /props returns it, and docs/guide/server.md documents it.
std::span<const FieldLimit> field_limits();

/// The most prompts of a request for completions.
inline constexpr std::size_t kMostPrompts = 128;

/// The error message if a string, list or object exceeds the table's limit, or "". `path` is as in errors, such as
/// `messages[3].content`.
std::string too_large(const Json& value, const std::string& path);
/// Throws FieldError if a value exceeds the table's limit.
void check_size(const Json& value, const std::string& path);

}  // namespace winnow::server
