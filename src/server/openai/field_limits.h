// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/openai/fields.h"

namespace winnow::server {

/// Unit in which a field's value is counted: bytes of a string, elements of a list, members of an object.
enum class SizeUnit : std::uint8_t { bytes, elements, members };

/// `bytes`, `elements` or `members`.
const char* name_of(SizeUnit unit);

/// The largest size of a field.
struct FieldLimit {
  std::string_view field;  ///< its path; `[]` stands for any element, `*` for all fields that have no row
  SizeUnit unit;
  std::size_t most;
};

/// As large as the body, and with as many values: texts and tokens that the model reads, which its context bounds.
inline constexpr std::size_t kWholeBody = static_cast<std::size_t>(-1);

/// The one table of the sizes that fields of requests may have. /props tells it, and docs/guide/server.md has it.
std::span<const FieldLimit> field_limits();

/// Prompts of a request for completions.
inline constexpr std::size_t kMostPrompts = 128;

/// Says that a string, list or object is larger than the table allows; empty: it is not. `path` as in errors, such as
/// `messages[3].content`.
std::string too_large(const Json& value, const std::string& path);
/// Throws FieldError where there is something to say.
void check_size(const Json& value, const std::string& path);

}  // namespace winnow::server
