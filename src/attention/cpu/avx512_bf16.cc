// SPDX-License-Identifier: Apache-2.0
#include <hwy/base.h>

#include <cstddef>
#include <cstdint>

#include "attention/cpu/avx512.h"
#include "attention/cpu/bf16_product.h"

#if HWY_ARCH_X86_64

HWY_PUSH_ATTRIBUTES(WINNOW_AVX512_BF16)

namespace winnow::attention::cpu {

namespace {

/// Rows with sums in registers: 16 of 32 registers, which hides the latency of products, and reuses each pair for
/// several rows.
constexpr int kRows = 8;
constexpr int kVectors = kStrip / kVector;

template <Start kStart>
void multiply_rows(const std::uint32_t* left, const std::uint32_t* right, int pairs, float* sums) {
  __m512 sum[kRows][kVectors];  // kept in registers: see logits-inl.h
  HWY_UNROLL(kRows)
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      sum[m][v] = kStart == Start::from_zero ? _mm512_setzero_ps()
                                             : _mm512_loadu_ps(sums + std::ptrdiff_t{m} * kStrip + v * kVector);
    }
  }
  for (int k = 0; k < pairs; ++k, right += kStrip) {
    __m512bh of_strip[kVectors];
    for (int v = 0; v < kVectors; ++v)
      of_strip[v] = (__m512bh)_mm512_loadu_si512(right + static_cast<std::ptrdiff_t>(v) * kVector);
    for (int m = 0; m < kRows; ++m) {
      const auto of_row = (__m512bh)_mm512_set1_epi32(static_cast<int>(left[std::ptrdiff_t{m} * pairs + k]));
      for (int v = 0; v < kVectors; ++v) sum[m][v] = _mm512_dpbf16_ps(sum[m][v], of_row, of_strip[v]);
    }
  }
  HWY_UNROLL(kRows)
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + std::ptrdiff_t{m} * kStrip + v * kVector, sum[m][v]);
  }
}

}  // namespace

void multiply_by_vectors(const StripProduct& p, Start start) {
  const auto* const left = reinterpret_cast<const std::uint32_t*>(p.left);
  const int pairs = p.depth / 2;
  for (int row = 0; row < p.rows; row += kRows) {
    const auto* const of_rows = left + static_cast<std::ptrdiff_t>(row) * pairs;
    float* const sums = p.sums + static_cast<std::ptrdiff_t>(row) * kStrip;
    if (start == Start::from_zero) {
      multiply_rows<Start::from_zero>(of_rows, p.right, pairs, sums);
    } else {
      multiply_rows<Start::from_memory>(of_rows, p.right, pairs, sums);
    }
  }
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#else

namespace winnow::attention::cpu {

void multiply_by_vectors(const StripProduct&, Start) {}

}  // namespace winnow::attention::cpu

#endif
