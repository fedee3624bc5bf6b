#include "attention/cpu/stretch.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/stretch.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which defines the target that this pass compiles for.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V load(const float* from) { return hn::LoadU(D(), from); }

template <class T>
HWY_INLINE V load(const T* from) {
  const hn::Rebind<T, D> dt;
  return hn::PromoteTo(D(), hn::LoadU(dt, from));
}

/// The last elements of a row whose length is no multiple of the vector, zeros beyond.
template <class T>
HWY_INLINE V load_n(const T* from, int n) {
  HWY_ALIGN T some[hn::MaxLanes(D())] = {};
  std::copy_n(from, n, some);
  return load(some);
}

HWY_INLINE void store_n(V v, float* to, int n) {
  HWY_ALIGN float some[hn::MaxLanes(D())];
  hn::Store(v, D(), some);
  std::copy_n(some, n, to);
}

template <int kHeads, class T>
void logits_of(const Stretch& s) {
  const int step = static_cast<int>(hn::Lanes(D()));
  const int dim = s.keys.dim;
  const int whole = dim / step * step;
  for (int key = 0; key < s.keys.count; ++key) {
    const auto* const row = reinterpret_cast<const T*>(s.keys.row(key));
    V sum[kHeads];
    for (int h = 0; h < kHeads; ++h) sum[h] = hn::Zero(D());
    for (int i = 0; i < whole; i += step) {
      const V k = load(row + i);
      for (int h = 0; h < kHeads; ++h) sum[h] = hn::MulAdd(k, load(s.q + static_cast<std::ptrdiff_t>(h) * dim + i), sum[h]);
    }
    if (whole < dim) {
      const V k = load_n(row + whole, dim - whole);
      for (int h = 0; h < kHeads; ++h) {
        sum[h] = hn::MulAdd(k, load_n(s.q + static_cast<std::ptrdiff_t>(h) * dim + whole, dim - whole), sum[h]);
      }
    }
    for (int h = 0; h < kHeads; ++h) s.logits[h * kStretchKeys + key] = hn::GetLane(hn::SumOfLanes(D(), sum[h]));
  }
}

/// Logits to exponentials, their largest and their sum.
void soften(const Stretch& s, int head) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  float* const x = s.logits + static_cast<std::ptrdiff_t>(head) * kStretchKeys;
  const int n = s.keys.count;
  const int whole = (n + step - 1) / step * step;
  std::fill(x + n, x + whole, kNothing);  // kStretchKeys is a multiple of every vector's length
  V top = hn::Set(d, kNothing);
  for (int i = 0; i < whole; i += step) top = hn::Max(top, hn::Load(d, x + i));
  const float m = hn::GetLane(hn::MaxOfLanes(d, top));
  s.m[head] = m;
  const V base = hn::Set(d, m == kNothing ? 0.0F : m);
  V sum = hn::Zero(d);
  for (int i = 0; i < whole; i += step) {
    const V p = hn::Exp(d, hn::Sub(hn::Load(d, x + i), base));
    hn::Store(p, d, x + i);
    sum = hn::Add(sum, p);
  }
  s.d[head] = hn::GetLane(hn::SumOfLanes(d, sum));
}

template <int kHeads, class T>
HWY_INLINE void weigh_column(const Stretch& s, int column, int n) {
  const D d;
  V sum[kHeads];
  for (int h = 0; h < kHeads; ++h) sum[h] = hn::Zero(d);
  const bool whole = n == static_cast<int>(hn::Lanes(d));
  for (int key = 0; key < s.values.count; ++key) {
    const auto* const row = reinterpret_cast<const T*>(s.values.row(key)) + column;
    const V v = whole ? load(row) : load_n(row, n);
    for (int h = 0; h < kHeads; ++h) sum[h] = hn::MulAdd(hn::Set(d, s.logits[h * kStretchKeys + key]), v, sum[h]);
  }
  for (int h = 0; h < kHeads; ++h) store_n(sum[h], s.o + static_cast<std::ptrdiff_t>(h) * s.values.dim + column, n);
}

template <int kHeads, class T>
void weigh(const Stretch& s) {
  const int step = static_cast<int>(hn::Lanes(D()));
  for (int column = 0; column < s.values.dim; column += step) weigh_column<kHeads, T>(s, column, std::min(step, s.values.dim - column));
}

/// Calls f with the stretch's number of heads as a constant.
template <int kHeads, template <int> class F>
HWY_INLINE void with_heads(const Stretch& s) {
  if (s.heads == kHeads) {
    F<kHeads>::call(s);
  } else if constexpr (kHeads < kStretchHeads) {
    with_heads<kHeads + 1, F>(s);
  }
}

template <int kHeads>
struct Logits {
  static void call(const Stretch& s) {
    switch (s.keys.type) {
      case ElementType::f16: return logits_of<kHeads, hwy::float16_t>(s);
      case ElementType::bf16: return logits_of<kHeads, hwy::bfloat16_t>(s);
      default: return logits_of<kHeads, float>(s);
    }
  }
};

template <int kHeads>
struct Weigh {
  static void call(const Stretch& s) {
    switch (s.values.type) {
      case ElementType::f16: return weigh<kHeads, hwy::float16_t>(s);
      case ElementType::bf16: return weigh<kHeads, hwy::bfloat16_t>(s);
      default: return weigh<kHeads, float>(s);
    }
  }
};

void run(const Stretch& s) {
  with_heads<1, Logits>(s);
  for (int h = 0; h < s.heads; ++h) {
    if (s.capture != nullptr) {
      std::copy_n(s.logits + static_cast<std::ptrdiff_t>(h) * kStretchKeys, s.keys.count,
                  s.capture + static_cast<std::ptrdiff_t>(h) * s.capture_stride);
    }
    soften(s, h);
  }
  with_heads<1, Weigh>(s);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(run);

void run_stretch(const Stretch& stretch) { HWY_DYNAMIC_DISPATCH(run)(stretch); }

}  // namespace winnow::attention::cpu
#endif
