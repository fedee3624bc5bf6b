// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "decode_step.h"

namespace winnow::device::test {
namespace {

class Decode : public testing::TestWithParam<StepShape> {};

TEST_P(Decode, attends_over_ragged_lanes_as_the_reference_does) {
  SameBits out;
  in_several_orders([&] {
    DecodeStep step(GetParam());
    step.run();
    step.expect_as_reference();
    out.expect(step.out());
  });
}

INSTANTIATE_TEST_SUITE_P(
    , Decode,
    testing::Values(
        StepShape{.dim = 64, .heads = 4, .kv_heads = 2, .runs = {{300, 1, 16}, {}, {7}}, .probabilities = true},
        StepShape{.dim = 64,
                  .runs = {{1}, {64, 64}, {17}},
                  .keys = Element::f16,
                  .values = Element::f16,
                  .sinks = true,
                  .probabilities = true},
        StepShape{.dim = 64, .heads = 9, .runs = {{33, 40}}, .cap = 5, .probabilities = true},
        StepShape{.dim = 80, .heads = 7, .runs = {{130}}},
        StepShape{.dim = 128,
                  .heads = 8,
                  .kv_heads = 2,
                  .runs = {{70, 3}, {256, 256, 1}},
                  .sinks = true,
                  .probabilities = true},
        StepShape{.dim = 128, .heads = 4, .runs = {{90}}, .keys = Element::q8_0, .values = Element::q8_0},
        StepShape{.dim = 64, .heads = 2, .runs = {{50, 9}}, .keys = Element::q8_0, .values = Element::f16},
        StepShape{.dim = 96,
                  .heads = 2,
                  .runs = {{21}},
                  .keys = Element::q8_0,
                  .values = Element::q4_0,
                  .probabilities = true},
        StepShape{.dim = 64, .heads = 2, .runs = {{129}}, .keys = Element::q4_0, .values = Element::q4_0},
        StepShape{
            .dim = 256, .heads = 2, .runs = {{40}, {20}}, .keys = Element::f16, .values = Element::f16, .cap = 30},
        StepShape{.dim = 64, .runs = {std::vector<int>(35, 3)}}, StepShape{.dim = 200, .heads = 3, .runs = {{19}}},
        StepShape{.dim = 64, .heads = 2, .runs = {{40, 9}}, .keys = Element::f32, .values = Element::f32},
        StepShape{.dim = 80, .heads = 3, .runs = {{37}}, .keys = Element::q8_0, .values = Element::q4_0},
        StepShape{.dim = 128, .heads = 2, .runs = {{300}}, .keys = Element::q4_0, .values = Element::q4_0},
        StepShape{.dim = 128,
                  .heads = 3,
                  .runs = {{100, 7}, {}},
                  .keys = Element::q8_0,
                  .values = Element::q8_0,
                  .probabilities = true},
        StepShape{.dim = 256, .runs = {{70}}, .keys = Element::q8_0, .values = Element::f16}));

INSTANTIATE_TEST_SUITE_P(
    Turned, Decode,
    testing::Values(
        StepShape{
            .dim = 64, .heads = 4, .kv_heads = 2, .runs = {{70}, {9}}, .pairs = 32, .halves = true, .shifted = true},
        StepShape{.dim = 64, .heads = 2, .runs = {{20}, {30}}, .pairs = 16, .shifted = true},
        StepShape{.dim = 128,
                  .heads = 4,
                  .kv_heads = 2,
                  .runs = {{70, 33}, {5}},
                  .probabilities = true,
                  .pairs = 64,
                  .halves = true,
                  .positions = true,
                  .merged = true},
        StepShape{.dim = 64,
                  .heads = 9,
                  .runs = {{90, 3}},
                  .keys = Element::f16,
                  .values = Element::f16,
                  .cap = 5,
                  .sinks = true,
                  .probabilities = true,
                  .pairs = 32,
                  .positions = true,
                  .merged = true,
                  .shifted = true},
        StepShape{.dim = 80, .heads = 2, .runs = {{35}}, .pairs = 16, .halves = true, .positions = true},
        StepShape{.dim = 96,
                  .heads = 2,
                  .runs = {{35}},
                  .keys = Element::q8_0,
                  .values = Element::q8_0,
                  .pairs = 48,
                  .halves = true,
                  .positions = true},
        StepShape{.dim = 72,
                  .heads = 2,
                  .runs = {{40}},
                  .keys = Element::q4_0,
                  .values = Element::q4_0,
                  .pairs = 16,
                  .merged = true},
        StepShape{.dim = 128,
                  .heads = 2,
                  .runs = {{50}},
                  .keys = Element::q8_0,
                  .values = Element::f16,
                  .pairs = 32,
                  .positions = true,
                  .merged = true},
        StepShape{.dim = 256, .heads = 2, .runs = {{40}}, .pairs = 128, .halves = true, .positions = true},
        StepShape{.dim = 64,
                  .runs = {{21}},
                  .keys = Element::f32,
                  .values = Element::f32,
                  .pairs = 24,
                  .halves = true,
                  .positions = true,
                  .merged = true},
        StepShape{.dim = 128,
                  .runs = {{600}},
                  .keys = Element::q8_0,
                  .values = Element::q4_0,
                  .pairs = 64,
                  .positions = true}));

// Disabled as in prefill_test.cc.
INSTANTIATE_TEST_SUITE_P(
    DISABLED_Long, Decode,
    testing::Values(StepShape{
        .dim = 128, .heads = 4, .runs = {{131072, 100}, {3}}, .sinks = true, .probabilities = true}));

TEST(Step, a_row_without_entries_gives_zeros_even_with_a_sink) {
  const Array<float> q(std::vector<float>(64, 1.0F));
  const Array<float> out(64);
  const Array<float> sink(std::vector<float>{2});
  const Array<std::int32_t> first_item(std::vector<std::int32_t>{0, 0});
  DecodeTask task{};
  task.q = q.address();
  task.out = out.address();
  task.sinks = sink.address();
  task.first_item = first_item.address();
  task.key_element = task.value_element = Element::f16;
  task.rows = task.heads = task.kv_heads = 1;
  task.dim = 64;
  task.scale = 1;
  ASSERT_EQ(winnow_kernels()->decode(task, nullptr), nullptr);
  EXPECT_EQ(out.read(), std::vector<float>(64, 0.0F));
}

TEST(Step, names_rotations_that_no_kernel_has) {
  const Rotation rotation(12, true, 64);
  DecodeTask task{};
  task.dim = 64;
  task.key_element = task.value_element = Element::f16;
  task.angles = rotation.angles();
  EXPECT_STREQ(winnow_kernels()->decode(task, nullptr),
               "elements of a head that are rotated must be a multiple of 16 up to the head's size");
  task.angles = {};
  task.listed = 1;
  EXPECT_STREQ(winnow_kernels()->decode(task, nullptr), "entries with positions need angles");
}

TEST(Step, names_what_lanes_may_have) {
  DecodeTask task{};
  task.dim = 64;
  task.key_element = Element::f16;
  task.value_element = Element::q8_0;
  EXPECT_STREQ(winnow_kernels()->decode(task, nullptr),
               "lanes on a device have f32, f16, bf16, q8_0 or q4_0 for keys and values, or q8_0 with f16 or q4_0");
}

}  // namespace
}  // namespace winnow::device::test
