// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/stretch.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numbers>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/stretch.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "attention/cpu/cap.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/logits-inl.h"
#include "attention/cpu/rotated-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// Vectors of values in registers, for each head.
constexpr int kVectorsTogether = 4;

/// o[columns] += weights · values for kVectors vectors of columns; if `last` is not 0, the only vector has `last`
/// columns.
template <int kHeads, int kVectors, class T>
HWY_INLINE void weigh_columns(const Heads& h, const cache::Rows& rows, int column, int last) {
  const int step = static_cast<int>(hn::Lanes(D()));
  V sum[kHeads][kVectors];
  HWY_UNROLL(4)
  for (int i = 0; i < kHeads; ++i) {
    const float* const o = h.o + static_cast<std::ptrdiff_t>(i) * rows.dim + column;
    HWY_UNROLL(4)
    for (int c = 0; c < kVectors; ++c) sum[i][c] = last == 0 ? load(o + c * step) : load_n(o, last);
  }
  for (int key = 0; key < rows.count; ++key) {
    const T* const row = reinterpret_cast<const T*>(rows.row(key)) + column;
    V v[kVectors];
    HWY_UNROLL(4)
    for (int c = 0; c < kVectors; ++c) v[c] = last == 0 ? load(row + c * step) : load_n(row, last);
    HWY_UNROLL(4)
    for (int i = 0; i < kHeads; ++i) {
      const V p = hn::Set(D(), h.logits[i * kStretchKeys + key]);
      HWY_UNROLL(4)
      for (int c = 0; c < kVectors; ++c) sum[i][c] = hn::MulAdd(p, v[c], sum[i][c]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kHeads; ++i) {
    float* const o = h.o + static_cast<std::ptrdiff_t>(i) * rows.dim + column;
    HWY_UNROLL(4)
    for (int c = 0; c < kVectors; ++c) {
      if (last == 0) {
        hn::StoreU(sum[i][c], D(), o + c * step);
      } else {
        store_n(sum[i][c], o, last);
      }
    }
  }
}

template <int kHeads, class T>
void weigh(const Heads& h, const cache::Rows& rows) {
  const int step = static_cast<int>(hn::Lanes(D()));
  int column = 0;
  for (; column + kVectorsTogether * step <= rows.dim; column += kVectorsTogether * step) {
    weigh_columns<kHeads, kVectorsTogether, T>(h, rows, column, 0);
  }
  for (; column + step <= rows.dim; column += step) weigh_columns<kHeads, 1, T>(h, rows, column, 0);
  if (column < rows.dim) weigh_columns<kHeads, 1, T>(h, rows, column, rows.dim - column);
}

enum class Sweep { logits, values };

template <Sweep kSweep, int kHeads, class T>
HWY_INLINE void sweep_of_type(const Heads& h, const cache::Rows& rows) {
  if constexpr (kSweep == Sweep::logits) {
    logits_of<kHeads, T>(h, rows);
  } else {
    weigh<kHeads, T>(h, rows);
  }
}

template <Sweep kSweep, int kHeads>
void sweep_of(const Heads& h, const cache::Rows& rows) {
  switch (rows.type) {
    case ElementType::f16:
      return sweep_of_type<kSweep, kHeads, hwy::float16_t>(h, rows);
    case ElementType::bf16:
      return sweep_of_type<kSweep, kHeads, hwy::bfloat16_t>(h, rows);
    default:
      return sweep_of_type<kSweep, kHeads, float>(h, rows);
  }
}

/// Calls each(head, count) with the count, at most kMost, as an integral constant.
template <int kMost, class Each>
HWY_INLINE void with_constant(int head, int count, const Each& each) {
  if constexpr (kMost > 1) {
    if (count < kMost) return with_constant<kMost - 1>(head, count, each);
  }
  each(head, std::integral_constant<int, kMost>());
}

/// Calls each(first head, number of heads) for all heads, kHeadsTogether at a time; the number is an integral constant.
template <class Each>
HWY_INLINE void for_heads(int heads, const Each& each) {
  for (int head = 0; head < heads; head += kHeadsTogether) with_constant<kHeadsTogether>(head, heads - head, each);
}

/// Processes some rows for all heads; `x` [heads][kStretchKeys] has logits or weights, those of these rows from `first`
/// on.
template <Sweep kSweep>
void sweep(const Stretch& s, const cache::Rows& rows, float* x, int first) {
  for_heads(s.heads, [&](int head, auto count) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(head) * rows.dim;
    sweep_of<kSweep, count()>({s.q + at, x + static_cast<std::ptrdiff_t>(head) * kStretchKeys + first, s.o + at}, rows);
  });
}

/// Sets keys of some entries, with the angles of their effective positions; a merged entry's key is its centre's.
void set_keys(const Stretch& s, int first, RotatedKeys& keys) {
  const bool quantized = s.keys.type == ElementType::q8_0 || s.keys.type == ElementType::q4_0;
  const AngleRows angles = s.table->rows();
  keys.count = std::min(kTogether, s.entries() - first);
  for (int i = 0; i < keys.count; ++i) {
    const int merged_entry = first + i - s.own;
    const int row = merged_entry < 0 ? first + i : s.centres[merged_entry] - s.first_centre;
    const std::int32_t rotation = merged_entry < 0 ? s.rotate_to[first + i] : s.merged_rotate_to[merged_entry];
    float* const decoded = s.rows + static_cast<std::ptrdiff_t>(i) * decoded_width(s.keys.dim);
    if (quantized) decode_row_of(s.keys, row, decoded);
    keys.row[i] = quantized ? reinterpret_cast<const std::byte*>(decoded) : s.keys.row(row);
    keys.angles[i] = angles.at(rotation);
  }
  for (int i = keys.count; i % kKeysTogether != 0; ++i) {
    keys.row[i] = keys.row[i - 1];
    keys.angles[i] = keys.angles[i - 1];
  }
}

template <class T>
void rotated_logits_of_type(const Stretch& s, const RotatedKeys& keys, int first) {
  for_heads(s.heads, [&](int head, auto count) {
    const std::ptrdiff_t at = head;
    rotated_logits_of<count(), T>({s.split + at * keys.query_width(), s.logits + at * kStretchKeys + first, nullptr},
                                  keys);
  });
}

/// Logits of keys that are rotated to their effective positions.
void rotated_logits(const Stretch& s) {
  RotatedKeys keys;
  keys.dim = s.keys.dim;
  keys.pairs = s.table->pairs();
  keys.width = s.table->width();
  keys.pairing = s.table->pairing();
  for (std::ptrdiff_t head = 0; head < s.heads; ++head)
    split_query(s.q + head * keys.dim, keys, s.split + head * keys.query_width());
  for (int first = 0; first < s.entries(); first += kTogether) {
    set_keys(s, first, keys);
    switch (s.keys.type) {
      case ElementType::f16:
        rotated_logits_of_type<hwy::float16_t>(s, keys, first);
        break;
      case ElementType::bf16:
        rotated_logits_of_type<hwy::bfloat16_t>(s, keys, first);
        break;
      default:
        rotated_logits_of_type<float>(s, keys, first);
        break;
    }
  }
  for (int head = 0; head < s.heads; ++head) {
    float* HWY_RESTRICT const logits = s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys + s.own;
    for (int i = 0; i < s.merged_entries; ++i) logits[i] *= s.scales[i];
  }
}

void plain_logits(const Stretch& s) {
  for (int first = 0; first < s.keys.count; first += kTogether) {
    const cache::Rows some = s.keys.slice(first, std::min(kTogether, s.keys.count - first));
    sweep<Sweep::logits>(s, readable(some, s.rows), s.logits, first);
  }
}

/// Turns logits into exponentials; sets their maximum and sum.
void soften(const Stretch& s, int head) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  float* const x = s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
  const int n = s.entries();
  const int whole = (n + step - 1) / step * step;
  std::fill(x + n, x + whole, kNothing);  // kStretchKeys is a multiple of every vector's length
  V top = hn::Set(d, kNothing);
  for (int i = 0; i < whole; i += step) top = hn::Max(top, hn::Load(d, x + i));
  const float m = hn::GetLane(hn::MaxOfLanes(d, top));
  s.m[head] = m;
  const V base = hn::Set(d, m == kNothing ? 0.0F : m);
  const V log2e = hn::Set(d, std::numbers::log2e_v<float>);
  V sum = hn::Zero(d);
  for (int i = 0; i < whole; i += step) {
    const V p = exp2_of_negative(d, hn::Mul(hn::Sub(hn::Load(d, x + i), base), log2e));
    hn::Store(p, d, x + i);
    sum = hn::Add(sum, p);
  }
  s.d[head] = hn::GetLane(hn::SumOfLanes(d, sum));
}

/// Sums the weights of each row and its merged entries. The merged entries of a row are contiguous, so their sum is
/// added once.
void gather_weights(const Stretch& s) {
  for (int head = 0; head < s.heads; ++head) {
    const float* HWY_RESTRICT const of_entries = s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
    const float* HWY_RESTRICT const of_merged_entries = of_entries + s.own;
    float* HWY_RESTRICT const of_rows = s.weights + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
    std::fill(std::copy_n(of_entries, s.own, of_rows), of_rows + s.keys.count, 0.0F);
    for (int i = 0; i < s.merged_entries;) {
      const std::int32_t centre = s.centres[i];
      float sum = 0;
      for (; i < s.merged_entries && s.centres[i] == centre; ++i) sum += of_merged_entries[i];
      of_rows[centre - s.first_centre] += sum;
    }
  }
}

void capture(const Stretch& s, int head) {
  const float* const from = s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(head) * s.capture_stride;
  if (s.capture != nullptr) std::copy_n(from, s.own, s.capture + at);
  if (s.merged_capture != nullptr) std::copy_n(from + s.own, s.merged_entries, s.merged_capture + at);
}

void run(const Stretch& s) {
  const bool rotated = s.rotate_to != nullptr || s.merged_rotate_to != nullptr;
  if (rotated) {
    rotated_logits(s);
  } else {
    plain_logits(s);
  }
  for (int head = 0; head < s.heads; ++head) {
    if (s.cap > 0) cap_logits(s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys, s.entries(), s.cap);
    soften(s, head);
    capture(s, head);
  }
  const bool merged = s.merged_entries > 0;
  if (merged) gather_weights(s);
  std::fill_n(s.o, static_cast<std::ptrdiff_t>(s.heads) * s.values.dim, 0.0F);
  for (int first = 0; first < s.values.count; first += kTogether) {
    const cache::Rows some = s.values.slice(first, std::min(kTogether, s.values.count - first));
    sweep<Sweep::values>(s, readable(some, s.rows), merged ? s.weights : s.logits, first);
  }
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(run);

void run_stretch(const Stretch& stretch) { HWY_DYNAMIC_DISPATCH(run)(stretch); }

}  // namespace winnow::attention::cpu
#endif
