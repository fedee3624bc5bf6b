// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "base/as_size.h"
#include "winnow/kv_type.h"

namespace winnow::cache {

/// Bytes of a stored row of `dim` elements. Quantized rows are padded to whole blocks of 32 values.
std::size_t row_bytes(ElementType type, int dim);

/// Encodes a row [dim] of f32. `out` holds row_bytes(type, dim).
void encode_row(ElementType type, std::span<const float> row, std::byte* out);

/// Decodes a row into f32 [dim].
void decode_row(ElementType type, const std::byte* row, std::span<float> out);

/// A view of `count` encoded rows of `dim` elements; row i is at data + i * stride bytes.
struct Rows {
  const std::byte* data = nullptr;
  std::size_t stride = 0;
  int count = 0;
  int dim = 0;
  ElementType type = ElementType::f16;

  const std::byte* row(int i) const { return data + as_size(i) * stride; }
  Rows slice(int begin, int n) const { return {row(begin), stride, n, dim, type}; }
};

}  // namespace winnow::cache
