// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target: the guard toggles when foreach_target.h goes on to the next one.
#if defined(WINNOW_ATTENTION_CPU_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WINNOW_ATTENTION_CPU_EXP2_INL_H_
#undef WINNOW_ATTENTION_CPU_EXP2_INL_H_
#else
#define WINNOW_ATTENTION_CPU_EXP2_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// 2^x for x <= 0, relative error at most 2^-23; exactly 0 for x <= -126.5, including minus infinity. Undefined for
/// NaN.
///
/// 2^x = 2^n 2^f with n the integer nearest to x. Adding 1.5 2^23 + 127 leaves n + 127 in the low bits of the sum,
/// which shifted by 23 are the bits of 2^n, 0 for n = -127; subtracting it again gives n. 2^f is a polynomial of degree
/// 6 through 2^0 = 1, a Chebyshev fit of (2^f - 1) / f over [-1/2, 1/2]; its own error is below 2^-27. Needs about half
/// the instructions of Highway's Exp, which also handles positive x and subnormal results.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp2_of_negative(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const V shifter = hn::Set(d, 12582912.0F + 127.0F);
  x = hn::Max(x, hn::Set(d, -127.0F));
  const V shifted = hn::Add(x, shifter);
  const V f = hn::Sub(x, hn::Sub(shifted, shifter));
  V p = hn::Set(d, 1.5453163e-4F);
  p = hn::MulAdd(p, f, hn::Set(d, 1.3390863e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 9.6180826e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5503571e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022651F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.69314719F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
