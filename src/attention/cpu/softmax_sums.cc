// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/softmax_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/softmax_sums.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

void add_softmax_of(float* HWY_RESTRICT logits, std::size_t n, int zeros, float* HWY_RESTRICT sums) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  const std::size_t whole = n / step * step;
  V most = hn::Set(d, zeros > 0 ? 0.0F : logits[0]);
  for (std::size_t j = 0; j < whole; j += step) most = hn::Max(most, hn::LoadU(d, logits + j));
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (std::size_t j = whole; j < n; ++j) largest = std::max(largest, logits[j]);
  const V log2e = hn::Set(d, std::numbers::log2e_v<float>);
  const V base = hn::Set(d, largest);
  V sum = hn::Zero(d);
  for (std::size_t j = 0; j < whole; j += step) {
    const V x = exp2_of_negative(d, hn::Mul(hn::Sub(hn::LoadU(d, logits + j), base), log2e));
    hn::StoreU(x, d, logits + j);
    sum = hn::Add(sum, x);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum)) + static_cast<float>(zeros) * std::exp(-largest);
  for (std::size_t j = whole; j < n; ++j) total += logits[j] = std::exp(logits[j] - largest);
  const float factor = 1 / total;
  const V by = hn::Set(d, factor);
  for (std::size_t j = 0; j < whole; j += step)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, logits + j), by, hn::LoadU(d, sums + j)), d, sums + j);
  for (std::size_t j = whole; j < n; ++j) sums[j] += logits[j] * factor;
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(add_softmax_of);

void add_softmax(std::span<float> logits, int zeros, float* sums) {
  HWY_DYNAMIC_DISPATCH(add_softmax_of)(logits.data(), logits.size(), zeros, sums);
}

}  // namespace winnow::attention::cpu
#endif
