// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

// References of methods that look only at keys, or at nothing.
std::vector<std::vector<double>> keys_of(const FakeLayer& layer, int head) {
  std::vector<std::vector<double>> out;
  for (int j = 0; j < layer.tokens(); ++j) {
    const auto row = layer.token(j);
    const auto at = row.begin() + head * FakeLayer::kDim;
    out.emplace_back(at, at + FakeLayer::kDim);
  }
  return out;
}

double length(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

std::vector<std::int32_t> best(const std::vector<double>& score, int count) {
  const auto order = ranking(score);
  return sorted({order.begin(), order.begin() + count});
}

TEST(KNorm, keeps_the_shortest_keys) {
  FakeLayer layer(2, 1, 60, random_attention(1));
  for (int head = 0; head < 2; ++head) {
    std::vector<double> score;
    for (const auto& key : keys_of(layer, head)) score.push_back(-length(key));
    for (const int budget : {1, 20, 59}) EXPECT_EQ(layer.plan("knorm", budget).heads[head], best(score, budget));
  }
}

TEST(KeyDiff, keeps_the_keys_that_are_unlike_the_mean_direction) {
  FakeLayer layer(2, 1, 60, random_attention(1));
  for (int head = 0; head < 2; ++head) {
    const auto keys = keys_of(layer, head);
    std::vector<double> mean(FakeLayer::kDim);
    for (const auto& key : keys) {
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += key[i] / length(key);
    }
    std::vector<double> score;
    for (const auto& key : keys) {
      double product = 0;
      for (std::size_t i = 0; i < mean.size(); ++i) product += key[i] * mean[i];
      score.push_back(-product / length(key) / length(mean));
    }
    for (const int budget : {1, 20, 59}) EXPECT_EQ(layer.plan("keydiff", budget).heads[head], best(score, budget));
  }
}

/// The magnitude multiplies only the dimensions that RoPE rotates.
TEST(OwnRows, a_magnitude_of_some_dimensions_does_not_count) {
  const FakeLayer plain(2, 1, 60, random_attention(1));
  const FakeLayer stretched(2, 1, 60, random_attention(1), 0, 4);
  ASSERT_EQ(stretched.token(5)[0], 4 * plain.token(5)[0]);
  ASSERT_EQ(stretched.token(5)[7], plain.token(5)[7]);
  for (const char* spec : {"knorm", "keydiff"}) {
    for (const int budget : {1, 20, 59})
      EXPECT_EQ(stretched.plan(spec, budget).heads, plain.plan(spec, budget).heads) << spec;
  }
}

TEST(Random, keeps_each_entry_equally_often) {
  FakeLayer layer(1, 1, 40, random_attention(1));
  std::vector<int> times(40);
  constexpr int kSeeds = 2000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto plan = layer.plan("random:seed=" + std::to_string(seed), 10);
    for (const auto j : plan.heads[0]) ++times[j];
  }
  for (const int t : times) EXPECT_NEAR(t, kSeeds / 4, 4.5 * std::sqrt(kSeeds * 0.25 * 0.75));  // for 40 binomials
  EXPECT_EQ(layer.plan("random:seed=5", 10).heads, layer.plan("random:seed=5", 10).heads);
  EXPECT_NE(layer.plan(Spec::parse("random"), 10, 0).heads, layer.plan(Spec::parse("random"), 10, 1).heads);
}

}  // namespace
}  // namespace winnow::test
