// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target: the guard toggles when foreach_target.h goes on to the next one.
#if defined(WINNOW_ATTENTION_CPU_RETAINED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WINNOW_ATTENTION_CPU_RETAINED_INL_H_
#undef WINNOW_ATTENTION_CPU_RETAINED_INL_H_
#else
#define WINNOW_ATTENTION_CPU_RETAINED_INL_H_
#endif

#include <hwy/highway.h>

#include "attention/cpu/block.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// A vector of probabilities of one key for queries of one strip, from Retained::row() on.
template <ComputeType kComputeTypes>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>> load_retained(const float* row, int key) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  if constexpr (kComputeTypes == ComputeType::f32) {
    return hn::LoadU(d, row);
  } else {
    const auto pairs = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(row));
    return hn::BitCast(d, key % 2 == 0 ? hn::ShiftLeft<16>(pairs) : hn::And(pairs, hn::Set(du, 0xffff0000U)));
  }
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
