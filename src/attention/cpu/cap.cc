// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/cap.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/cap.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "attention/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

HWY_INLINE V capped(V logits, V cap) { return hn::Mul(hn::Tanh(D(), logits), cap); }

void cap_all(float* HWY_RESTRICT logits, int count, float cap) {
  const int step = static_cast<int>(hn::Lanes(D()));
  const V by = hn::Set(D(), cap);
  int i = 0;
  for (; i + step <= count; i += step) hn::StoreU(capped(load(logits + i), by), D(), logits + i);
  if (i < count) store_n(capped(load_n(logits + i, count - i), by), logits + i, count - i);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(cap_all);

void cap_logits(float* logits, int count, float cap) { HWY_DYNAMIC_DISPATCH(cap_all)(logits, count, cap); }

}  // namespace winnow::attention::cpu
#endif
