// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "rows.h"

namespace winnow::device::test {

/// Encoded rows as kernels read them: bytes, scales, and the values that they stand for.
struct Rows {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint16_t> scales;
  std::vector<float> values;
};

/// Bytes of a row of `dim` elements, without its scales.
inline std::size_t bytes_of(Element element, int dim) {
  switch (element) {
    case Element::f32:
      return z(dim) * 4;
    case Element::q8_0:
      return z(dim);
    case Element::q4_0:
      return z(dim) / 2;
    default:
      return z(dim) * 2;
  }
}

inline bool is_quantized(Element element) { return element == Element::q8_0 || element == Element::q4_0; }

/// The values of rows, by the layout that kernels.h describes.
std::vector<float> decoded(Element element, const std::vector<std::uint8_t>& bytes,
                           const std::vector<std::uint16_t>& scales);

/// Rows of any element with random bits: numbers near 1.
Rows random_rows(std::mt19937& random, Element element, int count, int dim);

}  // namespace winnow::device::test
