// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/power.h"

#include <algorithm>
#include <cstddef>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/power.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/retained-inl.h"
#include "attention/cpu/rows-inl.h"
#include "base/as_size.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {
/// A vector's worth of rows, side by side.
struct Side {
  Retained p;  ///< of all keys
  int query;
  const float* tile_weight;  ///< of tile 0
  int count;
  V power;
  V last_key;  ///< last visible key of each row
};

V load_some(const float* from, int n) {
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (n < static_cast<int>(hn::Lanes(D()))) return load_n(from, n);
  }
  return load(from);
}

V load_probabilities(const Side& r, int key) {
  if (r.count == static_cast<int>(hn::Lanes(D())) && r.query % r.p.strip + r.count <= r.p.strip) {
    const float* const row = r.p.row(key, r.query);
    return r.p.compute_type == ComputeType::f32 ? load_retained<ComputeType::f32>(row, key)
                                                : load_retained<ComputeType::bf16>(row, key);
  }
  HWY_ALIGN float some[hn::MaxLanes(D())] = {};
  for (int i = 0; i < r.count; ++i) some[i] = r.p.at(key, r.query + i);
  return hn::Load(D(), some);
}

V to_power(V p, V power) {
  const D d;
  const V x = hn::Mul(hn::Log2(d, hn::Max(p, hn::Set(d, 0x1p-126F))), power);
  return hn::Exp(d, hn::Mul(x, hn::Set(d, 0.693147181F)));
}

V raised(const Side& r, int key) {
  const V p = hn::Mul(load_probabilities(r, key),
                      load_some(r.tile_weight + key / tile_keys(r.p.compute_type) * r.p.queries, r.count));
  return hn::IfThenElseZero(hn::Le(hn::Set(D(), static_cast<float>(key)), r.last_key), to_power(p, r.power));
}

V sum_of(const Side& r, int keys) {
  V sum = hn::Zero(D());
  for (int key = 0; key < keys; ++key) sum = hn::Add(sum, raised(r, key));
  return sum;
}

/// `besides`: additional term of the softmax's sum.
void add_rows(const Side& r, int keys, V besides, float* out) {
  const D d;
  const V sum = hn::Add(besides, sum_of(r, keys));
  // Elements beyond the rows contribute to no sum.
  const V share = hn::IfThenElseZero(hn::FirstN(d, as_size(r.count)), hn::Div(hn::Set(d, 1.0F), sum));
  for (int key = 0; key < keys; ++key) out[key] += hn::GetLane(hn::SumOfLanes(d, hn::Mul(raised(r, key), share)));
}

V raised_sink(const Powers& w, int query, int count, V power) {
  const D d;
  const Block& b = *w.block;
  if (b.sink_logits == nullptr) return hn::Zero(d);
  const V logit = hn::Set(d, b.sink_logits[w.head] * std::numbers::log2e_v<float>);
  const V p = exp2_of_negative(d, hn::Sub(logit, load_some(b.base + query, count)));
  return to_power(hn::Mul(p, load_some(b.sum + query, count)), power);
}

void add(const Powers& w, float* out) {
  const D d;
  const Block& b = *w.block;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < w.tokens; i += step) {
    const int token = w.first_token + i;
    const int query = w.head * b.tokens + token;
    const int count = std::min(step, w.tokens - i);
    const V power = load_some(w.power + i, count);
    const V last_key = hn::Iota(d, static_cast<float>(b.first_key + token));
    V besides = raised_sink(w, query, count, power);
    if (b.past != nullptr) {
      const int keys = b.past->visible_keys();
      const V last = hn::Set(d, static_cast<float>(keys - 1));
      besides =
          hn::Add(besides, sum_of({b.past->tile_of(0), query, b.past->tile_weight + query, count, power, last}, keys));
    }
    add_rows({b.tile_of(0), query, b.tile_weight + query, count, power, last_key}, b.visible_keys(), besides, out);
  }
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(add);

void add_powers(const Powers& powers, float* out) { HWY_DYNAMIC_DISPATCH(add)(powers, out); }

}  // namespace winnow::attention::cpu
#endif
