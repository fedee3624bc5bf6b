// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/f32.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/f32.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "attention/cpu/cap.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/rows-inl.h"
#include "base/as_size.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// Loads rows [first, first + count) as f32 [padded count][width], padded with zeros.
void load_tile(const cache::Rows& rows, int first, int count, int width, float* HWY_RESTRICT tile) {
  for (int i = 0; i < padded(count, kRegisterRows); ++i) {
    float* const to = tile + static_cast<std::ptrdiff_t>(i) * width;
    if (i < count) decode_row_of(rows, first + i, to);
    std::fill(to + (i < count ? rows.dim : 0), to + width, 0.0F);
  }
}

/// c[m][query] (+)= sum over k of a[m * a_row + k * a_step] * b[k][query], for kRegisterRows rows and kVectors vectors
/// of queries in registers.
template <int kVectors, Start kStart>
HWY_INLINE void register_tile(const float* HWY_RESTRICT a, int a_row, int a_step, const float* HWY_RESTRICT b,
                              int depth, int stride, float* HWY_RESTRICT c) {
  const D d;
  const auto step = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  V sum[kRegisterRows][kVectors];
  for (int m = 0; m < kRegisterRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      sum[m][v] = kStart == Start::from_zero ? hn::Zero(d)
                                             : hn::Load(d, c + static_cast<std::ptrdiff_t>(m) * stride + v * step);
    }
  }
  for (int k = 0; k < depth; ++k) {
    V bk[kVectors];
    for (int v = 0; v < kVectors; ++v) bk[v] = hn::Load(d, b + static_cast<std::ptrdiff_t>(k) * stride + v * step);
    const float* const ak = a + static_cast<std::ptrdiff_t>(k) * a_step;
    for (int m = 0; m < kRegisterRows; ++m) {
      const V am = hn::Set(d, ak[static_cast<std::ptrdiff_t>(m) * a_row]);
      for (int v = 0; v < kVectors; ++v) sum[m][v] = hn::MulAdd(am, bk[v], sum[m][v]);
    }
  }
  for (int m = 0; m < kRegisterRows; ++m) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[m][v], d, c + static_cast<std::ptrdiff_t>(m) * stride + v * step);
  }
}

/// The product for any number of rows (a multiple of kRegisterRows) and all queries. Proceeds strip by strip, so that
/// b's strip stays in the L1 cache.
template <Start kStart>
void multiply(const float* a, int a_row, int a_step, const float* b, int rows, int depth, int stride, float* c) {
  const int width = static_cast<int>(hn::Lanes(D()));
  constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 3 : 1;  // 24 accumulators of 32 registers, 8 of 16
  int query = 0;
  for (; query + kVectors * width <= stride; query += kVectors * width) {
    for (int m = 0; m < rows; m += kRegisterRows) {
      register_tile<kVectors, kStart>(a + static_cast<std::ptrdiff_t>(m) * a_row, a_row, a_step, b + query, depth,
                                      stride, c + static_cast<std::ptrdiff_t>(m) * stride + query);
    }
  }
  for (; query < stride; query += width) {
    for (int m = 0; m < rows; m += kRegisterRows) {
      register_tile<1, kStart>(a + static_cast<std::ptrdiff_t>(m) * a_row, a_row, a_step, b + query, depth, stride,
                               c + static_cast<std::ptrdiff_t>(m) * stride + query);
    }
  }
}

/// Turns logits s [rows][queries] of keys from `first` on into probabilities relative to the running maximum; scales
/// earlier sums if the maximum rises. Keys beyond the last one are hidden.
template <Hidden kHidden>
void softmax_tile(const Block& b, int first, int rows, float* HWY_RESTRICT s) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int query = 0; query < b.queries; query += step) {
    const V old_max = hn::Load(d, b.base + query);
    const V limit = hn::Load(d, b.limit + query);
    V top = old_max;
    for (int i = 0; i < rows; ++i) {
      float* const at = s + static_cast<std::ptrdiff_t>(i) * b.queries + query;
      V x = hn::Load(d, at);
      if (kHidden != Hidden::none) {
        const V key = hn::Set(d, static_cast<float>(first + i));
        auto seen = hn::Le(key, limit);
        if (kHidden == Hidden::first_and_last) seen = hn::And(seen, hn::Ge(key, hn::Load(d, b.first + query)));
        x = hn::IfThenElse(seen, x, hn::Set(d, kNothing));
        hn::Store(x, d, at);
      }
      top = hn::Max(top, x);
    }
    // Before any key has been seen, -inf - -inf must not become NaN.
    const V base = hn::IfThenElse(hn::Eq(top, hn::Set(d, kNothing)), hn::Zero(d), top);
    V sum = hn::Zero(d);
    for (int i = 0; i < rows; ++i) {
      float* const at = s + static_cast<std::ptrdiff_t>(i) * b.queries + query;
      const V p = exp2_of_negative(d, hn::Sub(hn::Load(d, at), base));
      hn::Store(p, d, at);
      sum = hn::Add(sum, p);
    }
    const V shrink = exp2_of_negative(d, hn::Sub(old_max, base));
    hn::Store(hn::MulAdd(hn::Load(d, b.sum + query), shrink, sum), d, b.sum + query);
    hn::Store(top, d, b.base + query);
    if (hn::AllTrue(d, hn::Eq(top, old_max))) continue;
    for (int i = 0; i < b.width; ++i) {
      float* const o = b.o_strips + static_cast<std::ptrdiff_t>(i) * b.queries + query;
      hn::Store(hn::Mul(hn::Load(d, o), shrink), d, o);
    }
  }
}

void soften(const Block& b, int first, int rows, float* p) {
  if (b.from != nullptr && first < b.from[b.tokens - 1]) return softmax_tile<Hidden::first_and_last>(b, first, rows, p);
  if (first + rows > b.leading[0]) return softmax_tile<Hidden::last>(b, first, rows, p);
  softmax_tile<Hidden::none>(b, first, rows, p);
}

void run_tiles(const Block& b) {
  constexpr int kKeys = tile_keys(ComputeType::f32);
  const int width = b.width;
  for (int tile = b.first_tile(); tile < b.tiles(); ++tile) {
    const int first = tile * kKeys;
    const int count = std::min(kKeys, b.visible_keys() - first);
    const int rows = padded(count, kRegisterRows);
    float* const p = b.retains(tile) ? b.tile_of(tile).floats : reinterpret_cast<float*>(b.work);
    load_tile(b.keys, first, count, width, b.tile);
    multiply<Start::from_zero>(b.tile, width, 1, b.q_strips, rows, width, b.queries, p);
    if (b.cap > 0) cap_logits(p, rows * b.queries, b.cap_of_powers());
    soften(b, first, rows, p);
    if (b.retains(tile)) std::copy_n(b.base, b.queries, b.weight_of(tile));
    load_tile(b.values, first, count, width, b.tile);
    multiply<Start::from_memory>(b.tile, 1, width, p, width, rows, b.queries, b.o_strips);
  }
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(run_tiles);

std::size_t f32_bytes(int queries) { return as_size(tile_keys(ComputeType::f32)) * as_size(queries) * sizeof(float); }

void run_tiles_f32(const Block& block) { HWY_DYNAMIC_DISPATCH(run_tiles)(block); }

}  // namespace winnow::attention::cpu
#endif
