// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>

#include "base/cpu.h"
#include "benchmark/roofline.h"
#include "support/tiny_gguf.h"
#include "winnow/model.h"

namespace {

using winnow::benchmark::Work;

class WorkTest : public testing::Test {
 protected:
  void SetUp() override {
    winnow::test::TinyModel tiny;
    tiny.tied = false;
    winnow::test::write_tiny_gguf(tiny, path_);
    model_ = winnow::Model::load(path_);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::string path_ = testing::TempDir() + "work_test.gguf";
  std::shared_ptr<const winnow::Model> model_;
};

// 2 layers: q 64x256, k and v 64x128, o 256x64, gate, up and down 64x128; output 64x288; f32.
constexpr double kLayers = 2 * (64 * 256 + 2 * 64 * 128 + 256 * 64 + 3 * 64 * 128);
constexpr double kOutput = 64 * 288;

TEST_F(WorkTest, reading_multiplies_all_matrices_and_causal_pairs) {
  const Work work = winnow::benchmark::work_of_reading(*model_, 10, 5);
  const double pairs = 10 * 5 + (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10);
  const double attention = 2 * 4 * 64 * pairs * 4;  // layers, heads, dimensions; a multiply-add for q·k and one for p·v
  EXPECT_DOUBLE_EQ(work.operations, 2 * (10 * kLayers + kOutput) + attention);
  EXPECT_DOUBLE_EQ(work.bytes, 4 * (kLayers + kOutput));
}

TEST_F(WorkTest, decoding_reads_weights_and_cache_at_each_step) {
  const Work work = winnow::benchmark::work_of_decoding(*model_, 7, 3, 1000);
  EXPECT_DOUBLE_EQ(work.operations, 7 * 3 * 2 * (kLayers + kOutput));
  EXPECT_DOUBLE_EQ(work.bytes, 7 * (4 * (kLayers + kOutput) + 1000));
}

/// 2 layers: q and o 64x256, k and v 64x128, a router of 8 experts, 2 used experts with three matrices 64x96; output
/// 64x288.
TEST(WorkOfExperts, counts_those_that_a_token_has) {
  const std::string path = testing::TempDir() + "work_of_experts.gguf";
  winnow::test::TinyModel tiny;
  tiny.arch = "qwen3moe";
  tiny.tied = false;
  winnow::test::write_tiny_gguf(tiny, path);
  const auto model = winnow::Model::load(path);
  std::remove(path.c_str());
  constexpr double kOfALayer = 2 * 64 * 256 + 2 * 64 * 128 + 64 * 8 + 2 * 3 * 64 * 96;
  const Work work = winnow::benchmark::work_of_decoding(*model, 7, 3, 1000);
  EXPECT_DOUBLE_EQ(work.operations, 7 * 3 * 2 * (2 * kOfALayer + 64 * 288));
  EXPECT_DOUBLE_EQ(work.bytes, 7 * (4 * (2 * kOfALayer + 64 * 288) + 1000));
}

TEST_F(WorkTest, the_slower_of_computing_and_reading_counts) {
  const winnow::benchmark::Roofline roofline{1e9, 4e9, 1e6};
  EXPECT_DOUBLE_EQ(winnow::benchmark::least_seconds({8e9, 1}, roofline), 2.0);
  EXPECT_DOUBLE_EQ(winnow::benchmark::least_seconds({8e9, 3e6}, roofline), 3.0);
}

TEST(RooflineTest, has_all_rates_of_this_machine) {
  const auto roofline = winnow::benchmark::measure_roofline(1);
  EXPECT_GT(roofline.f32_rate, 1e8);
  EXPECT_EQ(roofline.bf16_rate > 0, winnow::multiplies_bf16());
  if (winnow::has_amx_bf16()) {
    EXPECT_GT(roofline.bf16_rate, roofline.f32_rate);
  }
  EXPECT_GT(roofline.bandwidth, 1e8);
}

}  // namespace
