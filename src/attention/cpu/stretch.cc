#include "attention/cpu/stretch.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/stretch.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which defines the target that this pass compiles for.
#include <hwy/highway.h>

#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/logits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// Vectors of values in registers at a time, beside the heads.
constexpr int kVectorsTogether = 4;

/// o[columns] += weights · values for kVectors vectors of columns; `last`, if not 0, is how many columns the only vector has.
template <int kHeads, int kVectors, class T>
HWY_INLINE void weigh_columns(const Heads& h, const cache::Rows& rows, int column, int last) {
  const int step = static_cast<int>(hn::Lanes(D()));
  V sum[kHeads][kVectors];
  for (int i = 0; i < kHeads; ++i) {
    const float* const o = h.o + static_cast<std::ptrdiff_t>(i) * rows.dim + column;
    for (int c = 0; c < kVectors; ++c) sum[i][c] = last == 0 ? load(o + c * step) : load_n(o, last);
  }
  for (int key = 0; key < rows.count; ++key) {
    const T* const row = reinterpret_cast<const T*>(rows.row(key)) + column;
    V v[kVectors];
    for (int c = 0; c < kVectors; ++c) v[c] = last == 0 ? load(row + c * step) : load_n(row, last);
    for (int i = 0; i < kHeads; ++i) {
      const V p = hn::Set(D(), h.logits[i * kStretchKeys + key]);
      for (int c = 0; c < kVectors; ++c) sum[i][c] = hn::MulAdd(p, v[c], sum[i][c]);
    }
  }
  for (int i = 0; i < kHeads; ++i) {
    float* const o = h.o + static_cast<std::ptrdiff_t>(i) * rows.dim + column;
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

enum class Pass { logits, values };

template <Pass kPass, int kHeads, class T>
HWY_INLINE void pass_of_type(const Heads& h, const cache::Rows& rows) {
  if constexpr (kPass == Pass::logits) {
    logits_of<kHeads, T>(h, rows);
  } else {
    weigh<kHeads, T>(h, rows);
  }
}

template <Pass kPass, int kHeads>
void pass_of(const Heads& h, const cache::Rows& rows) {
  switch (rows.type) {
    case ElementType::f16:
      return pass_of_type<kPass, kHeads, hwy::float16_t>(h, rows);
    case ElementType::bf16:
      return pass_of_type<kPass, kHeads, hwy::bfloat16_t>(h, rows);
    default:
      return pass_of_type<kPass, kHeads, float>(h, rows);
  }
}

void turn_to(const Stretch& s, int entry, float* row) { turn(row, s.table->at(s.turns[entry]), s.table->pairs(), s.table->pairing()); }

/// Keys of some entries, turned to where they count as lying.
cache::Rows keys_of(const Stretch& s, int first) {
  const cache::Rows some = s.keys.slice(first, std::min(kTogether, s.keys.count - first));
  if (s.turns == nullptr) return readable(some, s.rows);
  const cache::Rows rows = decoded(some, s.rows);
  for (int i = 0; i < rows.count; ++i) turn_to(s, first + i, s.rows + static_cast<std::ptrdiff_t>(i) * decoded_width(rows.dim));
  return rows;
}

/// Keys of some followers: each its founder's, scaled and turned.
cache::Rows followers_keys(const Stretch& s, int first) {
  const int count = std::min(kTogether, s.followers - first);
  const int width = decoded_width(s.keys.dim);
  for (int i = 0; i < count; ++i) {
    float* HWY_RESTRICT const row = s.rows + static_cast<std::ptrdiff_t>(i) * width;
    decode_row_of(s.keys, s.founders[first + i] - s.first_founder, row);
    for (int c = 0; c < width; ++c) row[c] *= s.scales[first + i];
    turn_to(s, first + i, row);
  }
  return {reinterpret_cast<const std::byte*>(s.rows), static_cast<std::size_t>(width) * sizeof(float), count, s.keys.dim, ElementType::f32};
}

/// Some rows and all heads, kHeadsTogether at a time; logits or weights are `x` [heads][kStretchKeys], for these rows from `first` on.
template <Pass kPass>
void pass(const Stretch& s, const cache::Rows& rows, float* x, int first) {
  for (int head = 0; head < s.heads; head += kHeadsTogether) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(head) * rows.dim;
    const Heads h{s.q + at, x + static_cast<std::ptrdiff_t>(head) * kStretchKeys + first, s.o + at};
    switch (std::min(kHeadsTogether, s.heads - head)) {
      case 1:
        pass_of<kPass, 1>(h, rows);
        break;
      case 2:
        pass_of<kPass, 2>(h, rows);
        break;
      case 3:
        pass_of<kPass, std::min(3, kHeadsTogether)>(h, rows);
        break;
      default:
        pass_of<kPass, kHeadsTogether>(h, rows);
        break;
    }
  }
}

/// Logits to exponentials, their largest and their sum.
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

/// What each row's followers weigh together.
void gather_weights(const Stretch& s) {
  for (int head = 0; head < s.heads; ++head) {
    const float* const of_followers = s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
    float* const of_rows = s.weights + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
    std::fill_n(of_rows, s.keys.count, 0.0F);
    for (int i = 0; i < s.followers; ++i) of_rows[s.founders[i] - s.first_founder] += of_followers[i];
  }
}

void run(const Stretch& s) {
  const bool follow = s.founders != nullptr;
  for (int first = 0; first < s.entries(); first += kTogether) {
    pass<Pass::logits>(s, follow ? followers_keys(s, first) : keys_of(s, first), s.logits, first);
  }
  for (int head = 0; head < s.heads; ++head) {
    soften(s, head);
    if (s.capture != nullptr) {
      std::copy_n(s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys, s.entries(),
                  s.capture + static_cast<std::ptrdiff_t>(head) * s.capture_stride);
    }
  }
  if (follow) gather_weights(s);
  std::fill_n(s.o, static_cast<std::ptrdiff_t>(s.heads) * s.values.dim, 0.0F);
  for (int first = 0; first < s.values.count; first += kTogether) {
    const cache::Rows some = s.values.slice(first, std::min(kTogether, s.values.count - first));
    pass<Pass::values>(s, readable(some, s.rows), follow ? s.weights : s.logits, first);
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
