#include "attention/cpu/amx.h"

#include <hwy/base.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/tiles.h"

// Vectors by intrinsics, not through Highway, of which this version converts no two vectors to bf16 and scales by no power of 2; and every
// machine with AMX has AVX-512.
#if HWY_ARCH_X86_64

#include <immintrin.h>

#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // the intrinsics' own undefined vectors
#endif

HWY_PUSH_ATTRIBUTES("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")

namespace winnow::attention::cpu {

namespace {

constexpr int kKeys = tile_keys(Products::bf16);
constexpr int kVector = kTileRows;  ///< f32

/// Products of 32 rows by a strip, tiles 0 … 3: left [32][depth] bf16, its rows `stride` bytes apart; right [depth / 2][strip] pairs.
HWY_INLINE void multiply_into_0123(const std::uint16_t* left, std::ptrdiff_t stride, const std::uint32_t* right, int depth) {
  const std::ptrdiff_t lower = kVector * stride / static_cast<std::ptrdiff_t>(sizeof(*left));
  for (int k = 0; k < depth; k += kAmxDepth) {
    const std::uint32_t* const pairs = right + static_cast<std::ptrdiff_t>(k / 2) * kAmxStrip;
    load_tile<4>(left + k, stride);
    load_tile<5>(left + lower + k, stride);
    load_tile<6>(pairs, kAmxStrip * 4);
    load_tile<7>(pairs + kVector, kAmxStrip * 4);
    multiply_tiles<0, 4, 6>();
    multiply_tiles<1, 4, 7>();
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
}

HWY_INLINE void load_0123(const float* from) {
  load_tile<0>(from, kAmxStrip * 4);
  load_tile<1>(from + kVector, kAmxStrip * 4);
  load_tile<2>(from + kVector * kAmxStrip, kAmxStrip * 4);
  load_tile<3>(from + kVector * kAmxStrip + kVector, kAmxStrip * 4);
}

HWY_INLINE void store_0123(float* to) {
  store_tile<0>(to, kAmxStrip * 4);
  store_tile<1>(to + kVector, kAmxStrip * 4);
  store_tile<2>(to + kVector * kAmxStrip, kAmxStrip * 4);
  store_tile<3>(to + kVector * kAmxStrip + kVector, kAmxStrip * 4);
}

// Elements.

/// Up to 16 stored elements as f32, zeros beyond.
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

/// Of each lane of `even` and `odd` a pair of bf16, rounded to nearest.
HWY_INLINE __m512i pairs_of(__m512 even, __m512 odd) {
  alignas(64) static constexpr std::uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                           8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

/// The columns of 16 rows of 16.
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

/// 2^x for x <= 126, relative error below 2^-13: a sixteenth of what rounding to bf16 costs. 2^0 = 1; 2^-infinity = 0. With the fraction f
/// of x, 2^f is 1 + f times a minimax polynomial of degree 2; two instructions do what is left of Highway's kind.
HWY_INLINE __m512 exp2_of(__m512 x) {
  constexpr int kAboveFloor = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  const __m512 f = _mm512_reduce_ps(x, kAboveFloor);
  __m512 p = _mm512_set1_ps(0.07706704F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.227645F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69511676F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, x);
}

// Packing.

constexpr __mmask16 first_of_16(int n) { return n >= kVector ? 0xffff : static_cast<__mmask16>((1 << std::max(n, 0)) - 1); }

/// What a step works on.
struct Work {
  std::uint16_t* keys;     ///< [kKeys][width]
  std::uint16_t* values;   ///< [width][kKeys]
  std::uint32_t* queries;  ///< [strips][width / 2][strip] pairs
  float* logits;           ///< [kKeys][strip]
  std::uint32_t* p;        ///< [kKeys / 2][strip] pairs
};

template <ElementType kType>
void pack_keys(const cache::Rows& rows, int first, int count, int width, std::uint16_t* out) {
  for (int key = 0; key < count; ++key) {
    for (int i = 0; i < width; i += kVector) {
      const auto some = (__m256i)_mm512_cvtneps_pbh(load_row<kType>(rows.row(first + key), i, first_of_16(rows.dim - i)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + static_cast<std::ptrdiff_t>(key) * width + i), some);
    }
  }
  std::fill_n(out + static_cast<std::ptrdiff_t>(count) * width, static_cast<std::ptrdiff_t>(kKeys - count) * width, std::uint16_t{0});
}

/// Elements [i, i + 16) of a row, zeros where there is nothing.
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
      for (int j = 0; j < kVector; ++j) _mm512_storeu_si512(out + static_cast<std::ptrdiff_t>(i + j) * kKeys + key, x[j]);
    }
  }
}

template <ElementType kType>
void pack_step(const Block& b, int first, int count, const Work& w) {
  pack_keys<kType>(b.keys, first, count, b.width, w.keys);
  pack_values<kType>(b.values, first, count, b.width, w.values);
}

void pack_step(const Block& b, int first, int count, const Work& w) {
  switch (b.keys.type) {
    case ElementType::f16:
      return pack_step<ElementType::f16>(b, first, count, w);
    case ElementType::bf16:
      return pack_step<ElementType::bf16>(b, first, count, w);
    default:
      return pack_step<ElementType::f32>(b, first, count, w);
  }
}

void pack_queries(const Block& b, std::uint32_t* out) {
  const std::ptrdiff_t rows = static_cast<std::ptrdiff_t>(b.lanes / kAmxStrip) * b.width;
  for (std::ptrdiff_t row = 0; row < rows; row += 2) {
    const float* const even = b.q_lanes + row * kAmxStrip;
    for (int i = 0; i < kAmxStrip; i += kVector) {
      _mm512_storeu_si512(out + row / 2 * kAmxStrip + i, pairs_of(_mm512_loadu_ps(even + i), _mm512_loadu_ps(even + kAmxStrip + i)));
    }
  }
}

// Softmax.

/// How far a logit may rise above what the exponentials of its lane are relative to, in powers of 2, before that rises too and what was
/// summed before has to be scaled. Bf16 and f32 reach much further.
constexpr float kSlack = 8;

/// 16 lanes of a strip in one step.
struct Lanes {
  const float* logits;  ///< [kKeys][strip]
  std::uint32_t* p;     ///< [kKeys / 2][strip]
  float* o;             ///< [width][strip]
  int width;
  float* base;
  float* sum;
  __m512i visible;  ///< keys of the step that a lane sees
};

template <bool kMasked>
HWY_INLINE __m512 largest(const Lanes& l) {
  const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 top[4] = {nothing, nothing, nothing, nothing};
  for (int key = 0; key < kKeys; key += 4) {
    for (int i = 0; i < 4; ++i) {
      const __m512 x = _mm512_loadu_ps(l.logits + static_cast<std::ptrdiff_t>(key + i) * kAmxStrip);
      if constexpr (kMasked) {
        top[i] = _mm512_mask_max_ps(top[i], _mm512_cmpgt_epi32_mask(l.visible, _mm512_set1_epi32(key + i)), top[i], x);
      } else {
        top[i] = _mm512_max_ps(top[i], x);
      }
    }
  }
  return _mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3]));
}

/// What the exponentials are relative to; raises it, and scales what was summed, where this step's logits are too large for it.
HWY_INLINE __m512 raised_base(const Lanes& l, __m512 top) {
  const __m512 old = _mm512_loadu_ps(l.base);
  const __mmask16 rises = _mm512_cmp_ps_mask(top, _mm512_add_ps(old, _mm512_set1_ps(kSlack)), _CMP_GT_OQ);
  if (rises == 0) return old;
  const __m512 base = _mm512_mask_mov_ps(old, rises, top);
  const __m512 shrink = _mm512_mask_mov_ps(_mm512_set1_ps(1.0F), rises, exp2_of(_mm512_sub_ps(old, base)));
  _mm512_storeu_ps(l.base, base);
  _mm512_storeu_ps(l.sum, _mm512_mul_ps(_mm512_loadu_ps(l.sum), shrink));
  for (int i = 0; i < l.width; ++i) {
    float* const o = l.o + static_cast<std::ptrdiff_t>(i) * kAmxStrip;
    _mm512_storeu_ps(o, _mm512_mul_ps(_mm512_loadu_ps(o), shrink));
  }
  return base;
}

template <bool kMasked>
HWY_INLINE __m512 probability(const Lanes& l, int key, __m512 base) {
  const __m512 p = exp2_of(_mm512_sub_ps(_mm512_loadu_ps(l.logits + static_cast<std::ptrdiff_t>(key) * kAmxStrip), base));
  return kMasked ? _mm512_maskz_mov_ps(_mm512_cmpgt_epi32_mask(l.visible, _mm512_set1_epi32(key)), p) : p;
}

template <bool kMasked>
HWY_INLINE void soften(const Lanes& l) {
  const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 base = raised_base(l, largest<kMasked>(l));
  // Where nothing was seen yet, -inf - -inf must not become NaN.
  base = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(base, nothing, _CMP_NEQ_OQ), base);
  __m512 sums[2] = {_mm512_loadu_ps(l.sum), _mm512_setzero_ps()};
  for (int key = 0; key < kKeys; key += 4) {
    for (int i = 0; i < 2; ++i) {
      const __m512 even = probability<kMasked>(l, key + 2 * i, base);
      const __m512 odd = probability<kMasked>(l, key + 2 * i + 1, base);
      sums[i] = _mm512_add_ps(sums[i], _mm512_add_ps(even, odd));
      _mm512_storeu_si512(l.p + static_cast<std::ptrdiff_t>(key / 2 + i) * kAmxStrip, pairs_of(even, odd));
    }
  }
  _mm512_storeu_ps(l.sum, _mm512_add_ps(sums[0], sums[1]));
}

// Steps.

/// Where each strip's lanes end to see.
struct Limits {
  float least;
  float most;
};

Limits limits_of(const Block& b, int lane) {
  const auto [least, most] = std::minmax_element(b.limit + lane, b.limit + lane + kAmxStrip);
  return {*least, *most};
}

template <bool kMasked>
HWY_INLINE void soften_strip(const Block& b, int first, int lane, const Work& w) {
  float* const o = b.o_lanes + static_cast<std::ptrdiff_t>(lane) * b.width;
  for (int i = 0; i < kAmxStrip; i += kVector) {
    const __m512 last = _mm512_sub_ps(_mm512_loadu_ps(b.limit + lane + i), _mm512_set1_ps(static_cast<float>(first - 1)));
    soften<kMasked>({w.logits + i, w.p + i, o + i, b.width, b.base + lane + i, b.sum + lane + i, _mm512_cvtps_epi32(last)});
  }
}

/// A step of a strip that sees some of its keys.
void fold_strip(const Block& b, int first, int lane, const Limits& limits, const Work& w) {
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(lane) * b.width;
  for (int key = 0; key < kKeys; key += 2 * kVector) {
    zero_0123();
    multiply_into_0123(w.keys + static_cast<std::ptrdiff_t>(key) * b.width, b.width * 2, w.queries + at / 2, b.width);
    store_0123(w.logits + static_cast<std::ptrdiff_t>(key) * kAmxStrip);
  }
  if (limits.least >= static_cast<float>(first + kKeys - 1)) {
    soften_strip<false>(b, first, lane, w);
  } else {
    soften_strip<true>(b, first, lane, w);
  }
  for (int i = 0; i < b.width; i += 2 * kVector) {
    float* const o = b.o_lanes + at + static_cast<std::ptrdiff_t>(i) * kAmxStrip;
    load_0123(o);
    multiply_into_0123(w.values + static_cast<std::ptrdiff_t>(i) * kKeys, kKeys * 2, w.p, kKeys);
    store_0123(o);
  }
}

/// What is retained is written to where it stays, and the product with the values reads it there.
void run_strip(const Block& b, int first, int lane, Work w) {
  const int tile = first / kKeys;
  const Limits limits = limits_of(b, lane);
  const bool sees_some = limits.most >= static_cast<float>(first);
  if (b.retains(tile)) {
    w.p = reinterpret_cast<std::uint32_t*>(b.tile_of(tile).row(0, lane));
    if (!sees_some) std::fill_n(w.p, kKeys / 2 * kAmxStrip, 0U);
  }
  if (sees_some) fold_strip(b, first, lane, limits, w);
  if (b.retains(tile)) std::copy_n(b.base + lane, kAmxStrip, b.weight_of(tile) + lane);
}

/// Cuts the work space to pieces and returns its size, for which alone `memory` may be null.
std::size_t cut(int width, int lanes, std::byte* memory, Work& w) {
  std::size_t bytes = 0;
  const auto take = [&]<class T>(T*& piece, int rows, int columns) {
    if (memory != nullptr) piece = reinterpret_cast<T*>(memory + bytes);
    bytes += static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * sizeof(T);
  };
  take(w.keys, kKeys, width);
  take(w.values, width, kKeys);
  take(w.queries, width / 2, lanes);
  take(w.logits, kKeys, kAmxStrip);
  take(w.p, kKeys / 2, kAmxStrip);
  return bytes;
}

}  // namespace

AmxScope::AmxScope(Products products) {
  if (products == Products::bf16) tiles_.emplace();
}

std::size_t amx_bytes(int width, int lanes) {
  Work w;
  return cut(width, lanes, nullptr, w);
}

void run_tiles_amx(const Block& b) {
  Work w;
  cut(b.width, b.lanes, b.work, w);
  pack_queries(b, w.queries);
  for (int first = 0; first < b.visible_keys(); first += kKeys) {
    pack_step(b, first, std::min(kKeys, b.visible_keys() - first), w);
    for (int lane = 0; lane < b.lanes; lane += kAmxStrip) run_strip(b, first, lane, w);
  }
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#else

namespace winnow::attention::cpu {

AmxScope::AmxScope(Products) {}
std::size_t amx_bytes(int, int) { return 0; }
void run_tiles_amx(const Block&) {}

}  // namespace winnow::attention::cpu

#endif
