// SPDX-License-Identifier: Apache-2.0
// Frequencies and magnitudes of RoPE's scaling schemes, compared with the papers' formulas.
#include "model/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "model/weights.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/model.h"

namespace winnow {
namespace {

using model::RopeScaling;

constexpr double kBase = 10000;
constexpr int kDims = 64;

double unscaled(int pair) { return std::pow(kBase, -2.0 * pair / kDims); }

RopeScaling yarn(double factor, double context) {
  RopeScaling out;
  out.kind = RopeScaling::Kind::yarn;
  out.factor = factor;
  out.original_context = context;
  return out;
}

/// As in Mistral 3's files: a magnitude of (1 + 0.1 ln 8) / (1 + 0.05 ln 8), and bounds of 4 and 2 turns.
TEST(RopeScaling, yarn_has_the_file_s_turns_and_multiplier) {
  RopeScaling scaling = yarn(8, 2048);
  scaling.fast_turns = 4;
  scaling.slow_turns = 2;
  scaling.log_multiplier = 0.5;
  const Rope rope = scaled_rope(Rope::Pairing::halves, kBase, kDims, scaling);
  EXPECT_NEAR(static_cast<double>(rope.magnitude), 1.2079442 / 1.1039721, 1e-6);
  const double one_pair = std::pow(kBase, 2.0 / kDims);
  for (int i = 0; i < kDims / 2; ++i) {
    const double turns = 2048 * unscaled(i) / (2 * std::numbers::pi);
    const double ratio = static_cast<double>(rope.frequency[static_cast<std::size_t>(i)]) / unscaled(i);
    if (turns > 4 * one_pair) {
      EXPECT_NEAR(ratio, 1, 1e-6) << i;
    } else if (turns < 2 / one_pair) {
      EXPECT_NEAR(ratio, 1.0 / 8, 1e-6) << i;
    }
  }
  scaling.log_multiplier = 1;
  EXPECT_EQ(scaled_rope(Rope::Pairing::halves, kBase, kDims, scaling).magnitude, 1);
}

/// The temperature is 1 + 0.1 ln(1 + floor(p / 8)).
TEST(Temperature, rises_at_each_multiple_of_the_trained_context) {
  const model::Temperature temperature{0.1F, 8};
  for (const int position : {0, 7}) EXPECT_EQ(temperature.at(position), 1) << position;
  for (const int position : {8, 15}) EXPECT_FLOAT_EQ(temperature.at(position), 1.0693147F) << position;
  EXPECT_FLOAT_EQ(temperature.at(8000), 1.6908755F);
  EXPECT_EQ(model::Temperature{}.at(8000), 1);
}

TEST(RopeScaling, linear_divides_all_frequencies) {
  RopeScaling linear;
  linear.kind = RopeScaling::Kind::linear;
  linear.factor = 4;
  const Rope rope = scaled_rope(Rope::Pairing::halves, kBase, kDims, linear);
  for (int i = 0; i < kDims / 2; ++i) EXPECT_FLOAT_EQ(rope.frequency[static_cast<std::size_t>(i)], unscaled(i) / 4);
  EXPECT_EQ(rope.magnitude, 1);
  EXPECT_EQ(linear.context(2048), 8192);
}

TEST(RopeScaling, yarn_keeps_what_turns_often_and_interpolates_what_turns_less_than_once) {
  constexpr double kContext = 2048;
  constexpr double kFactor = 8;
  const Rope rope = scaled_rope(Rope::Pairing::halves, kBase, kDims, yarn(kFactor, kContext));
  int between = 0;
  for (int i = 0; i < kDims / 2; ++i) {
    const double turns = kContext * unscaled(i) / (2 * std::numbers::pi);
    const double ratio = static_cast<double>(rope.frequency[static_cast<std::size_t>(i)]) / unscaled(i);
    // The bounds are rounded outwards to whole pairs, so pairs within one pair of a bound are not checked exactly.
    const double one_pair = std::pow(kBase, 2.0 / kDims);
    if (turns > 32 * one_pair) {
      EXPECT_NEAR(ratio, 1, 1e-6) << i;
    } else if (turns < 1 / one_pair) {
      EXPECT_NEAR(ratio, 1 / kFactor, 1e-6) << i;
    } else {
      ++between;
      EXPECT_GE(ratio, 1 / kFactor - 1e-6) << i;
      EXPECT_LE(ratio, 1 + 1e-6) << i;
    }
  }
  EXPECT_GE(between, 8);
  EXPECT_NEAR(rope.magnitude, 0.1 * std::log(kFactor) + 1, 1e-6) << "Peng et al. 2023, equation 22";
}

TEST(RopeScaling, a_pair_of_yarn_computed_by_hand) {
  // L = 2048, base 10000, D = 64: 32 turns are at pair 32 ln(2048 / 64π) / ln 10000 = 8.06, one at 20.10; so the ramp
  // goes from 8 to 21. Pair 14 is 6/13 of the way: 7/13 of its frequency stay, 6/13 are divided by 8.
  const Rope rope = scaled_rope(Rope::Pairing::halves, kBase, kDims, yarn(8, 2048));
  EXPECT_FLOAT_EQ(rope.frequency[14], std::pow(10000.0, -28.0 / 64) * (7.0 / 13 + 6.0 / 13 / 8));
  EXPECT_FLOAT_EQ(rope.frequency[8], std::pow(10000.0, -16.0 / 64));
  EXPECT_FLOAT_EQ(rope.frequency[21], std::pow(10000.0, -42.0 / 64) / 8);
}

class RopeOfAFile : public testing::Test {
 protected:
  std::shared_ptr<const model::Weights> load(const test::TinyModel& tiny, const std::string& scaling = "") const {
    write_tiny_gguf(tiny, path_);
    ModelOptions options;
    options.rope_scaling = scaling;
    return model::Weights::load(path_, options);
  }
  const Rope& rope(const model::Weights& weights, int layer = 0) const { return weights.hparams().layer(layer).rope; }

  test::TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_F(RopeOfAFile, what_the_user_says_of_yarn_is_what_a_file_would_say) {
  test::TinyModel of_file;
  of_file.ctx_train = 1024;
  of_file.scaling = {"yarn", 4, 256, 0};
  test::TinyModel plain;
  const auto by_file = load(of_file);
  const auto by_user = load(plain, "yarn:4:256");
  EXPECT_EQ(rope(*by_file), rope(*by_user));
  EXPECT_EQ(rope(*by_file), rope(*load(plain, "yarn:4"))) << "the trained context is the file's";
  EXPECT_EQ(by_file->hparams().context, 1024);
  EXPECT_EQ(by_user->hparams().context, 1024);
  EXPECT_FALSE(rope(*by_file) == rope(*load(of_file, "none")));
}

TEST_F(RopeOfAFile, factors_of_long_texts_unless_the_context_is_the_trained_one) {
  test::TinyModel tiny = test::tiny_of("phi3");
  tiny.longrope = true;
  tiny.ctx_train = 1024;
  tiny.scaling.original_context = 256;
  const auto by_context = load(tiny);
  const auto of_long = load(tiny, "longrope:long");
  const auto of_short = load(tiny, "longrope:short");
  EXPECT_EQ(rope(*by_context), rope(*of_long));
  EXPECT_FALSE(rope(*of_long) == rope(*of_short));
  tiny.ctx_train = 256;
  EXPECT_EQ(rope(*load(tiny)), rope(*of_short));
}

TEST_F(RopeOfAFile, every_fourth_layer_of_smollm3_turns_nothing) {
  const auto weights = load(test::tiny_of("smollm3"));
  for (int layer = 0; layer < weights->hparams().n_layer; ++layer)
    EXPECT_EQ(rope(*weights, layer).frequency.empty(), layer == 3) << layer;
}

}  // namespace
}  // namespace winnow
