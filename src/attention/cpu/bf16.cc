// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/bf16.h"

#include <hwy/base.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/cpu/avx512.h"
#include "attention/cpu/bf16_pack.h"
#include "attention/cpu/bf16_product.h"
#include "attention/cpu/cap.h"
#include "base/as_size.h"
#include "base/cpu.h"

#if HWY_ARCH_X86_64

HWY_PUSH_ATTRIBUTES(WINNOW_AVX512_BF16)

namespace winnow::attention::cpu {

namespace {

constexpr int kKeys = tile_keys(ComputeType::bf16);

/// Work space of a step.
struct Work {
  std::uint16_t* keys;     ///< [kKeys][width]
  std::uint16_t* values;   ///< [width][kKeys]
  std::uint32_t* queries;  ///< [strips][width / 2][strip] pairs
  float* logits;           ///< [kKeys][strip]
  std::uint32_t* p;        ///< [kKeys / 2][strip] pairs
};

/// 2^x for x <= 126, relative error below 2^-13, a sixteenth of the error of rounding to bf16. 2^0 = 1; 2^-infinity =
/// 0. With the fraction f of x, 2^f is 1 + f times a minimax polynomial of degree 2; two instructions do the rest of
/// Highway's exp.
HWY_INLINE __m512 exp2_of(__m512 x) {
  constexpr int kAboveFloor = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  const __m512 f = _mm512_reduce_ps(x, kAboveFloor);
  __m512 p = _mm512_set1_ps(0.07706704F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.227645F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69511676F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, x);
}

/// How far a logit may exceed the base of its query's exponentials, in powers of 2, before the base is raised and
/// earlier sums are scaled. The ranges of bf16 and f32 are much larger.
constexpr float kSlack = 8;

/// 16 queries of a strip in one step.
struct StripPart {
  const float* logits;  ///< [kKeys][strip]
  std::uint32_t* p;     ///< [kKeys / 2][strip]
  float* o;             ///< [width][strip]
  int width;
  float* base;
  float* sum;
  __m512i end = {};    ///< end of the step's keys that a query sees
  __m512i first = {};  ///< first of them, if some query does not see the step's first keys
};

template <Hidden kHidden>
HWY_INLINE __mmask16 sees(const StripPart& l, int key) {
  const __mmask16 leading = _mm512_cmpgt_epi32_mask(l.end, _mm512_set1_epi32(key));
  if constexpr (kHidden == Hidden::last) return leading;
  return _mm512_mask_cmple_epi32_mask(leading, l.first, _mm512_set1_epi32(key));
}

template <Hidden kHidden>
HWY_INLINE __m512 largest(const StripPart& l) {
  const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 top[4] = {nothing, nothing, nothing, nothing};
  for (int key = 0; key < kKeys; key += 4) {
    for (int i = 0; i < 4; ++i) {
      const __m512 x = _mm512_loadu_ps(l.logits + static_cast<std::ptrdiff_t>(key + i) * kStrip);
      if constexpr (kHidden != Hidden::none) {
        top[i] = _mm512_mask_max_ps(top[i], sees<kHidden>(l, key + i), top[i], x);
      } else {
        top[i] = _mm512_max_ps(top[i], x);
      }
    }
  }
  return _mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3]));
}

/// Returns the base of the exponentials. Raises it, and scales earlier sums, if this step's logits are too large for
/// it.
HWY_INLINE __m512 raised_base(const StripPart& l, __m512 top) {
  const __m512 old = _mm512_loadu_ps(l.base);
  const __mmask16 rises = _mm512_cmp_ps_mask(top, _mm512_add_ps(old, _mm512_set1_ps(kSlack)), _CMP_GT_OQ);
  if (rises == 0) return old;
  const __m512 base = _mm512_mask_mov_ps(old, rises, top);
  const __m512 shrink = _mm512_mask_mov_ps(_mm512_set1_ps(1.0F), rises, exp2_of(_mm512_sub_ps(old, base)));
  _mm512_storeu_ps(l.base, base);
  _mm512_storeu_ps(l.sum, _mm512_mul_ps(_mm512_loadu_ps(l.sum), shrink));
  for (int i = 0; i < l.width; ++i) {
    float* const o = l.o + static_cast<std::ptrdiff_t>(i) * kStrip;
    _mm512_storeu_ps(o, _mm512_mul_ps(_mm512_loadu_ps(o), shrink));
  }
  return base;
}

template <Hidden kHidden>
HWY_INLINE __m512 probability(const StripPart& l, int key, __m512 base) {
  const __m512 p = exp2_of(_mm512_sub_ps(_mm512_loadu_ps(l.logits + static_cast<std::ptrdiff_t>(key) * kStrip), base));
  return kHidden == Hidden::none ? p : _mm512_maskz_mov_ps(sees<kHidden>(l, key), p);
}

template <Hidden kHidden>
HWY_INLINE void soften(const StripPart& l) {
  const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 base = raised_base(l, largest<kHidden>(l));
  // Before any key has been seen, -inf - -inf must not become NaN.
  base = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(base, nothing, _CMP_NEQ_OQ), base);
  __m512 sums[2] = {_mm512_loadu_ps(l.sum), _mm512_setzero_ps()};
  for (int key = 0; key < kKeys; key += 4) {
    for (int i = 0; i < 2; ++i) {
      const __m512 even = probability<kHidden>(l, key + 2 * i, base);
      const __m512 odd = probability<kHidden>(l, key + 2 * i + 1, base);
      sums[i] = _mm512_add_ps(sums[i], _mm512_add_ps(even, odd));
      _mm512_storeu_si512(l.p + static_cast<std::ptrdiff_t>(key / 2 + i) * kStrip, pairs_of(even, odd));
    }
  }
  _mm512_storeu_ps(l.sum, _mm512_add_ps(sums[0], sums[1]));
}

void multiply(const StripProduct& product, Start start) {
  static const auto kBest = has_amx_bf16() ? multiply_by_tiles : multiply_by_vectors;
  kBest(product, start);
}

/// Bounds of the first and of the last keys that a strip's queries see.
struct Limits {
  float least_first = 0;
  float most_first = 0;
  float least_last = 0;
  float most_last = 0;
};

Limits limits_of(const Block& b, int query) {
  const auto [least, most] = std::minmax_element(b.limit + query, b.limit + query + kStrip);
  if (b.from == nullptr) return {.least_last = *least, .most_last = *most};
  const auto [first, last] = std::minmax_element(b.first + query, b.first + query + kStrip);
  return {*first, *last, *least, *most};
}

/// Index of a key in a step that begins at `first`.
HWY_INLINE __m512i place_in_step(const float* keys, int first) {
  return _mm512_cvtps_epi32(_mm512_sub_ps(_mm512_loadu_ps(keys), _mm512_set1_ps(static_cast<float>(first))));
}

template <Hidden kHidden>
HWY_INLINE void soften_strip(const Block& b, int first, int query, const Work& w) {
  float* const o = b.o_strips + static_cast<std::ptrdiff_t>(query) * b.width;
  for (int i = 0; i < kStrip; i += kVector) {
    StripPart part{w.logits + i, w.p + i, o + i, b.width, b.base + query + i, b.sum + query + i};
    part.end = place_in_step(b.limit + query + i, first - 1);
    if constexpr (kHidden == Hidden::first_and_last) part.first = place_in_step(b.first + query + i, first);
    soften<kHidden>(part);
  }
}

/// A step of a strip that sees some of its keys.
void fold_strip(const Block& b, int first, int query, const Limits& limits, const Work& w) {
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(query) * b.width;
  multiply({w.keys, w.queries + at / 2, w.logits, kKeys, b.width}, Start::from_zero);
  if (b.cap > 0) cap_logits(w.logits, kKeys * kStrip, b.cap_of_powers());
  if (limits.most_first > static_cast<float>(first)) {
    soften_strip<Hidden::first_and_last>(b, first, query, w);
  } else if (limits.least_last < static_cast<float>(first + kKeys - 1)) {
    soften_strip<Hidden::last>(b, first, query, w);
  } else {
    soften_strip<Hidden::none>(b, first, query, w);
  }
  multiply({w.values, w.p, b.o_strips + at, b.width, kKeys}, Start::from_memory);
}

/// Retained probabilities are written to their final place, and the product with the values reads them there.
void run_strip(const Block& b, int first, int query, Work w) {
  const int tile = first / kKeys;
  const Limits limits = limits_of(b, query);
  const bool sees_some =
      limits.most_last >= static_cast<float>(first) && limits.least_first < static_cast<float>(first + kKeys);
  if (b.retains(tile)) {
    w.p = reinterpret_cast<std::uint32_t*>(b.tile_of(tile).row(0, query));
    if (!sees_some) std::fill_n(w.p, kKeys / 2 * kStrip, 0U);
  }
  if (sees_some) fold_strip(b, first, query, limits, w);
  if (b.retains(tile)) std::copy_n(b.base + query, kStrip, b.weight_of(tile) + query);
}

/// Divides the work space and returns its size; for the size alone `memory` may be null.
std::size_t cut(int width, int queries, std::byte* memory, Work& w) {
  std::size_t bytes = 0;
  const auto take = [&]<class T>(T*& part, int rows, int columns) {
    if (memory != nullptr) part = reinterpret_cast<T*>(memory + bytes);
    bytes += as_size(rows) * as_size(columns) * sizeof(T);
  };
  take(w.keys, kKeys, width);
  take(w.values, width, kKeys);
  take(w.queries, width / 2, queries);
  take(w.logits, kKeys, kStrip);
  take(w.p, kKeys / 2, kStrip);
  return bytes;
}

}  // namespace

std::size_t bf16_bytes(int width, int queries) {
  Work w;
  return cut(width, queries, nullptr, w);
}

void run_tiles_bf16(const Block& b) {
  Work w;
  cut(b.width, b.queries, b.work, w);
  pack_queries(b, w.queries);
  for (int first = b.first_tile() * kKeys; first < b.visible_keys(); first += kKeys) {
    pack_rows(b, first, std::min(kKeys, b.visible_keys() - first), w.keys, w.values);
    for (int query = 0; query < b.queries; query += kStrip) run_strip(b, first, query, w);
  }
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#else

namespace winnow::attention::cpu {

std::size_t bf16_bytes(int, int) { return 0; }
void run_tiles_bf16(const Block&) {}

}  // namespace winnow::attention::cpu

#endif
