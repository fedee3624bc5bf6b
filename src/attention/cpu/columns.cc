// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/columns.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/columns.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "attention/cpu/retained-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Passes the products of a key's probabilities and the weights to `vectors`, or one by one to `singles` at the end of
/// a strip or of the queries.
template <ComputeType kComputeTypes, class Vectors, class Singles>
HWY_INLINE void over_queries(const Columns& c, int key, const Vectors& vectors, const Singles& singles) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < c.queries;) {
    const int query = c.first_query + i;
    const int end = std::min(c.queries, i + c.p.strip - query % c.p.strip);
    const float* const row = c.p.row(key, query) - i;
    for (; i + step <= end; i += step)
      vectors(hn::Mul(load_retained<kComputeTypes>(row + i, key), hn::LoadU(d, c.weight + i)));
    for (; i < end; ++i) singles(c.p.at(key, c.first_query + i) * c.weight[i]);
  }
}

template <ComputeType kComputeTypes>
void add_columns_of(const Columns& c, float* HWY_RESTRICT out) {
  const D d;
  for (int i = 0; i < c.keys; ++i) {
    V sums = hn::Zero(d);
    float sum = 0;
    over_queries<kComputeTypes>(
        c, c.first_key + i, [&](V x) { sums = hn::Add(sums, x); }, [&](float x) { sum += x; });
    out[i] += hn::GetLane(hn::SumOfLanes(d, sums)) + sum;
  }
}

template <ComputeType kComputeTypes>
void raise_columns_of(const Columns& c, float* HWY_RESTRICT out) {
  const D d;
  for (int i = 0; i < c.keys; ++i) {
    V most = hn::Set(d, out[i]);
    over_queries<kComputeTypes>(
        c, c.first_key + i, [&](V x) { most = hn::Max(most, x); },
        [&](float x) { most = hn::Max(most, hn::Set(d, x)); });
    out[i] = hn::GetLane(hn::MaxOfLanes(d, most));
  }
}

void add_columns(const Columns& c, float* out) {
  c.p.compute_type == ComputeType::f32 ? add_columns_of<ComputeType::f32>(c, out)
                                       : add_columns_of<ComputeType::bf16>(c, out);
}

void raise_columns(const Columns& c, float* out) {
  c.p.compute_type == ComputeType::f32 ? raise_columns_of<ComputeType::f32>(c, out)
                                       : raise_columns_of<ComputeType::bf16>(c, out);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(add_columns);
HWY_EXPORT(raise_columns);

void add_to_sums(const Columns& columns, float* out) { HWY_DYNAMIC_DISPATCH(add_columns)(columns, out); }
void raise_maxima(const Columns& columns, float* out) { HWY_DYNAMIC_DISPATCH(raise_columns)(columns, out); }

}  // namespace winnow::attention::cpu
#endif
