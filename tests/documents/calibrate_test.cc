// SPDX-License-Identifier: Apache-2.0
#include "documents/calibrate.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace winnow::documents {
namespace {

/// A document of 12 middle blocks. Exponents are 1 unless given: {layer, block, exponent}.
class Fake : public Document {
 public:
  struct Exponent {
    std::size_t layer;
    std::size_t block;
    float value;
  };
  Fake(int layers, const std::vector<Exponent>& given) {
    head_.saved.seen = 15 * kBlock;
    head_.layers.resize(layers);
    for (auto& layer : head_.layers) {
      for (int b = 0; b < 12; ++b) layer.representatives.push_back({(b + 1) * kBlock, 1, 0});
    }
    for (const auto& g : given) head_.layers[g.layer].representatives[g.block].exponent = g.value;
  }
  const DocumentHead& head() const override { return head_; }
  LayerPart read(int, std::span<const TokenRange>) const override {
    throw std::logic_error("there is nothing to read");
  }
  LayerPart read_all(int) const override { throw std::logic_error("there is nothing to read"); }

 private:
  DocumentHead head_;
};

std::vector<int> scores_of(std::vector<std::shared_ptr<const Document>> documents) { return layer_scores(documents); }

TEST(Calibrate, a_layer_scores_where_the_most_important_block_stands_out) {
  // Block 4 ranks first in layers 1 and 3 and is an outlier there. Block 7 is one only in layer 0.
  const auto one = std::make_shared<Fake>(4, std::vector<Fake::Exponent>{{1, 4, 0}, {3, 4, 0.1F}, {0, 7, 0}});
  EXPECT_EQ(scores_of({one}), (std::vector{0, 1, 0, 1}));
  // Block 2 ranks first in all layers, but its exponent in layer 2 is no outlier among many small ones.
  const auto two = std::make_shared<Fake>(
      4, std::vector<Fake::Exponent>{
             {0, 2, 0}, {1, 2, 0}, {3, 2, 0}, {2, 2, 0.5F}, {2, 0, 0.6F}, {2, 1, 0.6F}, {2, 3, 0.6F}});
  EXPECT_EQ(scores_of({two}), (std::vector{1, 1, 0, 1}));
  EXPECT_EQ(scores_of({one, two}), (std::vector{1, 2, 0, 2}));
  EXPECT_EQ(scores_of({std::make_shared<Fake>(4, std::vector<Fake::Exponent>{})}), (std::vector{0, 0, 0, 0}));
}

/// 13 whole blocks and a token: the first block, the last two, and 11 others. Among only 10 others none can be an
/// outlier.
TEST(Calibrate, documents_of_fourteen_blocks_tell) {
  EXPECT_EQ(least_tokens(), 13 * 64 + 1);
  EXPECT_TRUE(is_long_enough({least_tokens()}));
  EXPECT_FALSE(is_long_enough({least_tokens() - 1}));
}

TEST(Calibrate, the_late_layers_that_score_most_decide) {
  EXPECT_EQ(deciding_layers(std::vector{9, 9, 9, 9, 0, 0, 3, 2}), 2);
  EXPECT_EQ(deciding_layers(std::vector{9, 9, 9, 9, 0, 0, 2, 2}), 2) << "a tie: more of them";
  EXPECT_EQ(deciding_layers(std::vector{0, 0, 0, 0, 0, 0, 2, 3}), 1);
  EXPECT_EQ(deciding_layers(std::vector{0, 0, 0, 0, 9, 0, 0, 0}), 4);
  EXPECT_EQ(deciding_layers(std::vector(30, 0)), 4) << "the default";
  EXPECT_EQ(deciding_layers(std::vector(80, 0)), 11) << "the default";
  EXPECT_EQ(deciding_layers(std::vector{5}), 1);
}

}  // namespace
}  // namespace winnow::documents
