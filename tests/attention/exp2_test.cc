// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/exp2_test.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which sets the target of this pass.
#include <hwy/highway.h>

#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// In place; x.size() is a multiple of 16.
void exp2_all(std::span<float> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < x.size(); i += hn::Lanes(d))
    hn::StoreU(exp2_of_negative(d, hn::LoadU(d, x.data() + i)), d, x.data() + i);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fixture.h"

namespace winnow::attention::cpu {
HWY_EXPORT(exp2_all);

namespace {

std::vector<float> exp2_of(std::vector<float> x) {
  x.resize((x.size() + 15) / 16 * 16, 0.0F);
  HWY_DYNAMIC_DISPATCH(exp2_all)(x);
  return x;
}

TEST(Exp2, relative_error_is_within_two_roundings) {
  std::vector<float> x;
  for (int i = 0; i <= 1 << 20; ++i) x.push_back(-126.0F * static_cast<float>(i) / (1 << 20));
  for (float tiny = -1; tiny < -1e-30F; tiny /= 3) x.push_back(tiny);
  on_every_target([&] {
    const auto y = exp2_of(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp2(static_cast<double>(x[i]));
      ASSERT_LE(std::abs(static_cast<double>(y[i]) - want), 2 * reference::kRoundoff * want) << x[i];
    }
  });
}

TEST(Exp2, zero_is_one_and_far_below_is_nothing) {
  on_every_target([&] {
    const auto y = exp2_of({0.0F, -0.0F, -1.0F, -126.5F, -127.0F, -128.0F, -1000.0F, -1e30F,
                            -std::numeric_limits<float>::max(), -std::numeric_limits<float>::infinity()});
    EXPECT_EQ(y[0], 1.0F);
    EXPECT_EQ(y[1], 1.0F);
    EXPECT_EQ(y[2], 0.5F);
    for (std::size_t i = 3; i < 10; ++i) EXPECT_EQ(y[i], 0.0F) << i;
  });
}

}  // namespace
}  // namespace winnow::attention::cpu
#endif
