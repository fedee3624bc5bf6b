// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/bf16_pack.h"

#include <hwy/base.h>

#include <algorithm>
#include <cstddef>

#include "attention/cpu/avx512.h"

#if HWY_ARCH_X86_64

HWY_PUSH_ATTRIBUTES(WINNOW_AVX512_BF16)

namespace winnow::attention::cpu {

namespace {

constexpr int kKeys = tile_keys(ComputeType::bf16);

/// Loads up to 16 stored elements as f32, padded with zeros.
template <ElementType kType>
HWY_INLINE __m512 load_row(const std::byte* row, int first, __mmask16 some) {
  if constexpr (kType == ElementType::f32) {
    return _mm512_maskz_loadu_ps(some, reinterpret_cast<const float*>(row) + first);
  } else {
    const __m256i half = _mm256_maskz_loadu_epi16(some, reinterpret_cast<const std::uint16_t*>(row) + first);
    if constexpr (kType == ElementType::f16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
}

/// Transposes 16 rows of 16.
HWY_INLINE void transpose(__m512i (&x)[kVector]) {
  __m512i y[kVector];
  for (int i = 0; i < kVector; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < kVector; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  for (int i = 0; i < kVector; i += 8) {
    for (int j = i; j < i + 4; ++j) {
      y[j] = _mm512_shuffle_i32x4(x[j], x[j + 4], 0x88);
      y[j + 4] = _mm512_shuffle_i32x4(x[j], x[j + 4], 0xdd);
    }
  }
  for (int j = 0; j < 8; ++j) {
    x[j] = _mm512_shuffle_i32x4(y[j], y[j + 8], 0x88);
    x[j + 8] = _mm512_shuffle_i32x4(y[j], y[j + 8], 0xdd);
  }
}

constexpr __mmask16 first_of_16(int n) {
  return n >= kVector ? 0xffff : static_cast<__mmask16>((1 << std::max(n, 0)) - 1);
}

template <ElementType kType>
void pack_keys(const cache::Rows& rows, int first, int count, int width, std::uint16_t* out) {
  for (int key = 0; key < count; ++key) {
    for (int i = 0; i < width; i += kVector) {
      const auto some =
          (__m256i)_mm512_cvtneps_pbh(load_row<kType>(rows.row(first + key), i, first_of_16(rows.dim - i)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + static_cast<std::ptrdiff_t>(key) * width + i), some);
    }
  }
  std::fill_n(out + static_cast<std::ptrdiff_t>(count) * width, static_cast<std::ptrdiff_t>(kKeys - count) * width,
              std::uint16_t{0});
}

/// Elements [i, i + 16) of a row; zeros beyond the rows and their elements.
template <ElementType kType>
HWY_INLINE __m512 load_if(const cache::Rows& rows, int row, int end, int i) {
  return row < end ? load_row<kType>(rows.row(row), i, first_of_16(rows.dim - i)) : _mm512_setzero_ps();
}

template <ElementType kType>
void pack_values(const cache::Rows& rows, int first, int count, int width, std::uint16_t* out) {
  const int end = first + count;
  for (int key = 0; key < kKeys; key += 2 * kVector) {
    for (int i = 0; i < width; i += kVector) {
      __m512i x[kVector];
      for (int j = 0; j < kVector; ++j) {
        const int row = first + key + 2 * j;
        x[j] = pairs_of(load_if<kType>(rows, row, end, i), load_if<kType>(rows, row + 1, end, i));
      }
      transpose(x);
      for (int j = 0; j < kVector; ++j)
        _mm512_storeu_si512(out + static_cast<std::ptrdiff_t>(i + j) * kKeys + key, x[j]);
    }
  }
}

template <ElementType kType>
void pack_of(const Block& b, int first, int count, std::uint16_t* keys, std::uint16_t* values) {
  pack_keys<kType>(b.keys, first, count, b.width, keys);
  pack_values<kType>(b.values, first, count, b.width, values);
}

}  // namespace

void pack_rows(const Block& b, int first, int count, std::uint16_t* keys, std::uint16_t* values) {
  switch (b.keys.type) {
    case ElementType::f16:
      return pack_of<ElementType::f16>(b, first, count, keys, values);
    case ElementType::bf16:
      return pack_of<ElementType::bf16>(b, first, count, keys, values);
    default:
      return pack_of<ElementType::f32>(b, first, count, keys, values);
  }
}

void pack_queries(const Block& b, std::uint32_t* out) {
  const std::ptrdiff_t rows = static_cast<std::ptrdiff_t>(b.queries / kStrip) * b.width;
  for (std::ptrdiff_t row = 0; row < rows; row += 2) {
    const float* const even = b.q_strips + row * kStrip;
    for (int i = 0; i < kStrip; i += kVector) {
      _mm512_storeu_si512(out + row / 2 * kStrip + i,
                          pairs_of(_mm512_loadu_ps(even + i), _mm512_loadu_ps(even + kStrip + i)));
    }
  }
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#else

namespace winnow::attention::cpu {

void pack_rows(const Block&, int, int, std::uint16_t*, std::uint16_t*) {}
void pack_queries(const Block&, std::uint32_t*) {}

}  // namespace winnow::attention::cpu

#endif
