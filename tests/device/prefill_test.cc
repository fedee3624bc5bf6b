// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "prompt.h"

namespace winnow::device::test {
namespace {

/// Compares a kernel's results for each query with attention in double precision.
void expect_as_reference(const Prompt& prompt) {
  const PromptShape& shape = prompt.shape();
  const auto out = prompt.out.read();
  const auto lse = prompt.lse.read();
  for (int i = 0; i < shape.count; ++i) {
    for (int h = 0; h < shape.heads; ++h) {
      const auto want = prompt.attend(i, h);
      const std::size_t at = z(i) * z(shape.heads) + z(h);
      ASSERT_NEAR(lse[at], lse_of(want), lse_error(want, lse_of(want))) << "query " << i << ", head " << h;
      for (std::size_t c = 0; c < z(shape.dim); ++c) {
        ASSERT_NEAR(out[at * z(shape.dim) + c], want.out[c], want.out_error[c])
            << "query " << i << ", head " << h << ", element " << c;
      }
    }
  }
}

class Prefill : public testing::TestWithParam<PromptShape> {};

TEST_P(Prefill, attends_as_the_reference_does) {
  SCOPED_TRACE(GetParam().name());
  SameBits out;
  SameBits lse;
  in_several_orders([&] {
    const Prompt prompt(GetParam());
    ASSERT_EQ(winnow_kernels()->prefill(prompt.task(), nullptr), nullptr);
    expect_as_reference(prompt);
    out.expect(prompt.out.read());
    lse.expect(prompt.lse.read());
  });
}

INSTANTIATE_TEST_SUITE_P(
    , Prefill,
    testing::Values(
        PromptShape{.dim = 64, .count = 130, .heads = 2, .kv_heads = 1},
        PromptShape{.dim = 64, .first = 70, .count = 65, .heads = 3, .kv_heads = 3, .element = Element::f16},
        PromptShape{.dim = 64, .first = 300, .count = 40, .heads = 2, .kv_heads = 2, .window = 50, .sinks = true},
        PromptShape{.dim = 64, .first = 5, .count = 1, .heads = 4, .kv_heads = 2, .cap = 5},
        PromptShape{.dim = 64, .first = 90, .count = 70, .window = 1},
        PromptShape{.dim = 64, .first = 62, .count = 20, .element = Element::f16},
        PromptShape{.dim = 64, .first = 64, .count = 16, .window = 79, .element = Element::f16},
        PromptShape{.dim = 80, .first = 3, .count = 70, .cap = 30, .sinks = true, .element = Element::f16},
        PromptShape{.dim = 96, .first = 60, .count = 33},
        PromptShape{.dim = 128, .first = 70, .count = 65, .heads = 2, .kv_heads = 1},
        PromptShape{.dim = 256, .first = 10, .count = 66, .cap = 50, .element = Element::f16},
        PromptShape{.dim = 200, .count = 17, .window = 8}));

INSTANTIATE_TEST_SUITE_P(
    Past, Prefill,
    testing::Values(
        PromptShape{.dim = 64, .count = 70, .heads = 4, .kv_heads = 2, .past = {100, 7}},
        PromptShape{
            .dim = 64, .first = 40, .count = 33, .heads = 2, .kv_heads = 2, .element = Element::f16, .past = {0, 64}},
        PromptShape{.dim = 64, .first = 3, .count = 140, .heads = 3, .kv_heads = 3, .window = 80, .past = {200, 20, 1}},
        PromptShape{.dim = 128, .first = 1, .count = 20, .cap = 5, .sinks = true, .past = {65}},
        PromptShape{.dim = 64, .count = 3, .element = Element::f16, .past = {63}},
        PromptShape{.dim = 256, .count = 9, .window = 5, .past = {33}}));

// At the end of a long context: too slow for the emulator, so only bench/gpu/run.sh runs it.
INSTANTIATE_TEST_SUITE_P(DISABLED_Long, Prefill,
                         testing::Values(PromptShape{.dim = 128, .first = 131060, .count = 4, .heads = 2}));

TEST(PrefillTask, names_a_size_of_heads_that_no_kernel_has) {
  PrefillTask task{};
  task.element = Element::bf16;
  task.dim = 264;
  EXPECT_STREQ(winnow_kernels()->prefill(task, nullptr), "a head's size must be a multiple of 8 up to 256");
  task.dim = 64;
  task.element = Element::q8_0;
  EXPECT_STREQ(winnow_kernels()->prefill(task, nullptr), "rows of a scratch must be f16 or bf16");
}

}  // namespace
}  // namespace winnow::device::test
