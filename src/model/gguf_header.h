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

/// A key of a GGUF as stored in the file.
struct Value {
  std::uint32_t type = 0;     ///< gguf_type
  std::uint32_t element = 0;  ///< gguf_type of an array's elements
  std::uint64_t count = 1;
  const std::byte* data = nullptr;      ///< numbers
  std::vector<std::string_view> texts;  ///< strings
};

/// A tensor as described by a GGUF header.
struct TensorEntry {
  std::string_view name;
  std::uint32_t dims = 0;
  std::array<std::int64_t, GGML_MAX_DIMS> shape{1, 1, 1, 1};
  std::uint32_t type = 0;    ///< ggml_type
  std::uint64_t offset = 0;  ///< from the first tensor
};

/// A parsed GGUF header. Nothing is copied: it points into the bytes it was read from.
struct GgufHeader {
  std::vector<std::pair<std::string_view, Value>> keys;
  std::vector<TensorEntry> tensors;
  std::size_t bytes = 0;  ///< size of the header; the first tensor begins at the next multiple of the alignment

  /// The first key of this name; null: none.
  const Value* find(std::string_view key) const;
  /// An integer of any type, or the first of an array; empty if the key is absent or has another type.
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// A string; empty if the key is absent or has another type.
  std::optional<std::string_view> text(std::string_view key) const;
};

/// Parses a header within the bytes of `file`; allocates no more than they justify. Checks only what parsing needs.
/// Throws ModelError with `path`, the fault and the numbers.
GgufHeader read_gguf_header(std::span<const std::byte> file, const std::string& path);

}  // namespace winnow::model
