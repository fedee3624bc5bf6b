// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace winnow::model {

/// One key of a GGUF as it lies in the file.
struct Value {
  std::uint32_t type = 0;     ///< gguf_type
  std::uint32_t element = 0;  ///< of an array
  std::uint64_t count = 1;
  const std::byte* data = nullptr;      ///< of numbers
  std::vector<std::string_view> texts;  ///< of strings
};

/// One tensor of a GGUF as its header describes it.
struct TensorEntry {
  std::string_view name;
  std::uint32_t dims = 0;
  std::array<std::int64_t, GGML_MAX_DIMS> shape{1, 1, 1, 1};
  std::uint32_t type = 0;    ///< ggml_type
  std::uint64_t offset = 0;  ///< after the header
};

/// A GGUF's header taken apart. Nothing is copied: all of it points into the bytes that it was read from.
struct GgufHeader {
  std::vector<std::pair<std::string_view, Value>> keys;
  std::vector<TensorEntry> tensors;
  std::size_t bytes = 0;  ///< of the header; the first tensor lies at the next multiple of the alignment

  /// Of the first key of a name; null: there is none.
  const Value* find(std::string_view key) const;
  /// An integer of any type, the first one of an array; nothing where a key is absent or of another type.
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// A string; nothing where a key is absent or of another type.
  std::optional<std::string_view> text(std::string_view key) const;
};

/// Reads within the bytes that are there, and asks for no memory that they do not account for. What is found is not
/// checked beyond what reading needs. Throws ModelError: `path`, what, the numbers.
GgufHeader read_gguf_header(std::span<const std::byte> file, const std::string& path);

}  // namespace winnow::model
