// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target: the guard toggles when foreach_target.h goes on to the next one.
#if defined(WINNOW_ATTENTION_CPU_LOGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WINNOW_ATTENTION_CPU_LOGITS_INL_H_
#undef WINNOW_ATTENTION_CPU_LOGITS_INL_H_
#else
#define WINNOW_ATTENTION_CPU_LOGITS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "attention/cpu/rows-inl.h"
#include "attention/cpu/stretch.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// Heads in registers at a time: 4 heads by 4 keys (or vectors of values) need 16 accumulators of 32 registers, 2 by 4
/// need 8 of 16.
constexpr int kHeadsTogether = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;
constexpr int kKeysTogether = 4;

// Loops over arrays of vectors are unrolled explicitly; otherwise GCC 12 keeps the arrays on the stack.

/// Writes the sum of the elements of each of four vectors.
HWY_INLINE void sum_elements(const V (&v)[kKeysTogether], float* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < kKeysTogether; ++i) out[i] = hn::GetLane(v[i]);
#else
  // Two rounds of interleaving put the four sums of each 128-bit block side by side.
  const D d;
  const hn::RepartitionToWide<D> pairs;
  const V ab = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const V cd = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto ab2 = hn::BitCast(pairs, ab);
  const auto cd2 = hn::BitCast(pairs, cd);
  const V sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab2, cd2)),
                         hn::BitCast(d, hn::InterleaveUpper(pairs, ab2, cd2)));
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(sums, d, out);
  } else {
    const hn::Half<D> half;
    const auto folded = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    if constexpr (hn::MaxLanes(half) == 4) {
      hn::StoreU(folded, half, out);
    } else {
      const hn::Half<decltype(half)> quarter;
      hn::StoreU(hn::Add(hn::LowerHalf(quarter, folded), hn::UpperHalf(quarter, folded)), quarter, out);
    }
  }
#endif
}

/// Some heads of a group: q [kHeads][dim], weights or logits [kHeads][kStretchKeys], o [kHeads][dim].
struct Heads {
  const float* q;
  float* logits;
  float* o;
};

HWY_INLINE void add_products(const V (&k)[kKeysTogether], V q, V (&sum)[kKeysTogether]) {
  HWY_UNROLL(4)
  for (int j = 0; j < kKeysTogether; ++j) sum[j] = hn::MulAdd(k[j], q, sum[j]);
}

/// Logits of kKeysTogether consecutive rows; the last row is repeated if fewer are left.
template <int kHeads, class T>
HWY_INLINE void logits_of_keys(const Heads& h, const cache::Rows& rows, int key) {
  const int step = static_cast<int>(hn::Lanes(D()));
  const int whole = rows.dim / step * step;
  const T* row[kKeysTogether];
  for (int j = 0; j < kKeysTogether; ++j)
    row[j] = reinterpret_cast<const T*>(rows.row(std::min(key + j, rows.count - 1)));
  V sum[kHeads][kKeysTogether];
  HWY_UNROLL(4)
  for (int i = 0; i < kHeads; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < kKeysTogether; ++j) sum[i][j] = hn::Zero(D());
  }
  V k[kKeysTogether];
  for (int at = 0; at < whole; at += step) {
    HWY_UNROLL(4)
    for (int j = 0; j < kKeysTogether; ++j) k[j] = load(row[j] + at);
    HWY_UNROLL(4)
    for (int i = 0; i < kHeads; ++i)
      add_products(k, load(h.q + static_cast<std::ptrdiff_t>(i) * rows.dim + at), sum[i]);
  }
  if (whole < rows.dim) {
    HWY_UNROLL(4)
    for (int j = 0; j < kKeysTogether; ++j) k[j] = load_n(row[j] + whole, rows.dim - whole);
    HWY_UNROLL(4)
    for (int i = 0; i < kHeads; ++i) {
      add_products(k, load_n(h.q + static_cast<std::ptrdiff_t>(i) * rows.dim + whole, rows.dim - whole), sum[i]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kHeads; ++i) sum_elements(sum[i], h.logits + i * kStretchKeys + key);
}

/// Logits beyond the last key are overwritten later: kStretchKeys is a multiple of kKeysTogether.
template <int kHeads, class T>
void logits_of(const Heads& h, const cache::Rows& rows) {
  for (int key = 0; key < rows.count; key += kKeysTogether) logits_of_keys<kHeads, T>(h, rows, key);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
