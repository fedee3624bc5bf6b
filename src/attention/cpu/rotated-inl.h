// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target: the guard toggles when foreach_target.h goes on to the next one.
#if defined(WINNOW_ATTENTION_CPU_ROTATED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WINNOW_ATTENTION_CPU_ROTATED_INL_H_
#undef WINNOW_ATTENTION_CPU_ROTATED_INL_H_
#else
#define WINNOW_ATTENTION_CPU_ROTATED_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "attention/cpu/logits-inl.h"
#include "attention/cpu/rows-inl.h"
#include "attention/cpu/stretch.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// Keys that are rotated in registers between loading and multiplying. The x and the y of pairs (x, y) are in two
/// vectors.
struct RotatedKeys {
  const std::byte* row[kTogether];
  Angles angles[kTogether];
  int count;
  int dim;
  int pairs;
  int width;  ///< floats for the x, or the y, of all pairs in a query: RotationTable::width()
  Rope::Pairing pairing;

  int query_width() const { return split_width(dim, pairs, width); }
};

/// Rotates pairs (x, y) by one angle each.
HWY_INLINE void rotate_pairs(V& x, V& y, V cosine, V sine) {
  const V rotated = hn::NegMulAdd(y, sine, hn::Mul(x, cosine));
  y = hn::MulAdd(x, sine, hn::Mul(y, cosine));
  x = rotated;
}

/// Writes a query as [width] x, [width] y, padded with zeros after the last pair, then the elements that are not
/// rotated.
inline void split_query(const float* HWY_RESTRICT q, const RotatedKeys& keys, float* HWY_RESTRICT out) {
  const bool adjacent = keys.pairing == Rope::Pairing::adjacent;
  std::fill_n(out, 2 * keys.width, 0.0F);
  for (int i = 0; i < keys.pairs; ++i) {
    out[i] = q[adjacent ? 2 * i : i];
    out[keys.width + i] = q[adjacent ? 2 * i + 1 : keys.pairs + i];
  }
  std::copy(q + std::ptrdiff_t{2} * keys.pairs, q + keys.dim, out + std::ptrdiff_t{2} * keys.width);
}

/// Loads a vector's worth of adjacent pairs.
template <class T>
HWY_INLINE void load_adjacent(const T* from, V& x, V& y) {
#if HWY_TARGET == HWY_SCALAR
  x = load(from);
  y = load(from + 1);
#else
  const V low = load(from);
  const V high = load(from + hn::Lanes(D()));
  x = hn::ConcatEven(D(), high, low);
  y = hn::ConcatOdd(D(), high, low);
#endif
}

/// Loads a vector's worth of pairs from pair i on; zeros after the last one.
template <class T>
HWY_INLINE void load_pairs(const T* row, const RotatedKeys& keys, int i, V& x, V& y) {
  const int count = keys.pairs - i;
  const bool whole = count >= static_cast<int>(hn::Lanes(D()));
  if (keys.pairing == Rope::Pairing::halves) {
    x = whole ? load(row + i) : load_n(row + i, count);
    y = whole ? load(row + keys.pairs + i) : load_n(row + keys.pairs + i, count);
  } else if (whole) {
    load_adjacent(row + std::ptrdiff_t{2} * i, x, y);
  } else {
    HWY_ALIGN T some[2 * hn::MaxLanes(D())] = {};
    std::copy_n(row + std::ptrdiff_t{2} * i, 2 * count, some);
    load_adjacent(some, x, y);
  }
}

/// Logits of kKeysTogether keys from `key` on; `h` has split queries.
template <int kHeads, class T>
HWY_INLINE void rotated_logits_of_keys(const Heads& h, const RotatedKeys& keys, int key) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  const std::ptrdiff_t q_step = keys.query_width();
  const T* row[kKeysTogether];
  for (int j = 0; j < kKeysTogether; ++j) row[j] = reinterpret_cast<const T*>(keys.row[key + j]);
  V sum[kHeads][kKeysTogether];
  HWY_UNROLL(4)
  for (auto& of_head : sum) {
    HWY_UNROLL(4)
    for (V& v : of_head) v = hn::Zero(d);
  }
  for (int i = 0; i < keys.pairs; i += step) {
    HWY_UNROLL(4)
    for (int j = 0; j < kKeysTogether; ++j) {
      const Angles& by = keys.angles[key + j];
      V cosine = hn::LoadU(d, by.coarse + i);
      V sine = hn::LoadU(d, by.coarse + keys.width + i);
      rotate_pairs(cosine, sine, hn::LoadU(d, by.fine + i), hn::LoadU(d, by.fine + keys.width + i));
      V x;
      V y;
      load_pairs(row[j], keys, i, x, y);
      rotate_pairs(x, y, cosine, sine);
      HWY_UNROLL(4)
      for (int head = 0; head < kHeads; ++head) {
        const float* const q = h.q + head * q_step + i;
        sum[head][j] = hn::MulAdd(x, load(q), hn::MulAdd(y, load(q + keys.width), sum[head][j]));
      }
    }
  }
  for (int at = 2 * keys.pairs; at < keys.dim; at += step) {
    const int count = std::min(step, keys.dim - at);
    HWY_UNROLL(4)
    for (int j = 0; j < kKeysTogether; ++j) {
      const V x = count == step ? load(row[j] + at) : load_n(row[j] + at, count);
      HWY_UNROLL(4)
      for (int head = 0; head < kHeads; ++head) {
        const float* const q = h.q + head * q_step + 2 * keys.width + at - 2 * keys.pairs;
        sum[head][j] = hn::MulAdd(x, count == step ? load(q) : load_n(q, count), sum[head][j]);
      }
    }
  }
  HWY_UNROLL(4)
  for (int head = 0; head < kHeads; ++head) sum_elements(sum[head], h.logits + head * kStretchKeys + key);
}

/// Logits beyond the last key are overwritten later, as in logits_of().
template <int kHeads, class T>
void rotated_logits_of(const Heads& h, const RotatedKeys& keys) {
  for (int key = 0; key < keys.count; key += kKeysTogether) rotated_logits_of_keys<kHeads, T>(h, keys, key);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
