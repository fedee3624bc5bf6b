// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "attention/reference.h"
#include "device/emulated/numbers.h"
#include "device/kernels.h"
#include "memory.h"

namespace winnow::device::test {

inline std::size_t z(int n) { return static_cast<std::size_t>(n); }

/// Normally distributed numbers.
inline std::vector<float> normal(std::mt19937& random, std::size_t count, float deviation = 1) {
  std::normal_distribution<float> of(0, deviation);
  std::vector<float> out(count);
  for (float& x : out) x = of(random);
  return out;
}

/// Numbers that a 16-bit element type can represent, and their bits.
struct Encoded {
  std::vector<float> values;
  std::vector<std::uint16_t> bits;
};

inline Encoded encoded(Element element, std::vector<float> values) {
  Encoded out{std::move(values), {}};
  for (float& x : out.values) {
    const bool half = element == Element::f16;
    out.bits.push_back(half ? emulated::f16_of(x) : emulated::bf16_of(x));
    x = half ? emulated::from_f16(out.bits.back()) : std::bit_cast<float>(std::uint32_t{out.bits.back()} << 16U);
  }
  return out;
}

/// Relative error of a GPU's approximate powers and logarithms.
inline constexpr double kExponential = 0x1p-21;

/// Unit roundoff of elements of 16 bits.
inline double roundoff(Element element) { return element == Element::f16 ? 0x1p-11 : 0x1p-8; }

/// Queries and probabilities are rounded to 16 bits; keys and values already have 16 bits. The reference counts the
/// rounding for both factors of a logit, hence the half.
inline reference::Rounding rounding_of(Element element) {
  return {.factors = roundoff(element) / 2, .weights = roundoff(element), .exponential = kExponential};
}

/// Rows [begin, end) of one of several heads' rows, [heads][capacity][dim].
inline std::vector<float> rows_of(const std::vector<float>& all, int head, int capacity, int dim, int begin, int end) {
  const auto first = all.begin() + (std::ptrdiff_t{head} * capacity + begin) * dim;
  return {first, first + std::ptrdiff_t{end - begin} * dim};
}

/// Error bound of the base-2 logarithm of a query's sum. Every weight's relative error is above that of the sum.
inline double lse_error(const reference::Result& row, double lse) {
  double least = 1;
  for (std::size_t j = 0; j < row.weight.size(); ++j) {
    if (row.weight[j] > 0) least = std::min(least, row.weight_error[j] / row.weight[j]);
  }
  return least / std::log(2.0) + 4 * kExponential * (1 + std::abs(lse));
}

/// Base-2 logarithm of the sum of exp(logit).
inline double lse_of(const reference::Result& row) {
  double largest = row.sink;
  for (const double x : row.logit) largest = std::max(largest, x);
  double sum = std::exp(row.sink - largest);
  for (const double x : row.logit) sum += std::exp(x - largest);
  return (largest + std::log(sum)) / std::log(2.0);
}

}  // namespace winnow::device::test
