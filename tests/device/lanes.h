// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "rows.h"

namespace winnow::device::test {

/// Encoded rows as kernels read them: bytes, scales, and their values.
struct Rows {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint16_t> scales;
  std::vector<float> values;
};

inline bool is_quantized(Element element) { return element == Element::q8_0 || element == Element::q4_0; }

/// The stored elements of a row of `dim`, with padding.
inline int padded(Element element, int dim) { return is_quantized(element) ? (dim + 31) / 32 * 32 : dim; }

/// Bytes of a row of `dim` elements, without its scales.
inline std::size_t bytes_of(Element element, int dim) {
  const std::size_t stored = z(padded(element, dim));
  switch (element) {
    case Element::f32:
      return stored * 4;
    case Element::q8_0:
      return stored;
    case Element::q4_0:
      return stored / 2;
    default:
      return stored * 2;
  }
}

/// The values of rows in the layout of kernels.h.
std::vector<float> decoded(Element element, const std::vector<std::uint8_t>& bytes,
                           const std::vector<std::uint16_t>& scales);

/// Rows [rows][padded] without their padding, [rows][dim].
std::vector<float> without_padding(Element element, const std::vector<float>& values, int dim);

/// Rows of any element type with random values near 1.
Rows random_rows(std::mt19937& random, Element element, int count, int dim);

/// The tables that turn rows by positions, on the device and on the host.
class Rotation {
 public:
  /// For positions whose magnitude is below `end`.
  Rotation(int pairs, bool halves, int end);

  Angles angles() const;
  /// A head turned by `positions`, in double precision.
  std::vector<float> turned(std::span<const float> head, std::int64_t positions) const;

 private:
  std::vector<float> multiples(int step, int count) const;

  bool halves_;
  int width_;
  std::vector<float> frequency_;
  Array<float> coarse_;
  Array<float> fine_;
};

}  // namespace winnow::device::test
