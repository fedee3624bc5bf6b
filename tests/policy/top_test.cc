// SPDX-License-Identifier: Apache-2.0
// Tests of rounding shares to whole numbers, and of the best entries of a head and of a layer.
#include "policy/top.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include "policy/apportion.h"

namespace winnow::policy {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<int> shares(std::initializer_list<double> of, int total) {
  return apportion(std::vector<double>(of), total);
}

TEST(Apportion, gives_what_is_left_to_the_largest_fractions) {
  EXPECT_EQ(shares({1.5, 1.5}, 3), (std::vector<int>{2, 1}));  // equal fractions: the lower index
  EXPECT_EQ(shares({0.2, 2.7, 1.1}, 4), (std::vector<int>{0, 3, 1}));
  EXPECT_EQ(shares({10.0 / 3, 10.0 / 3, 10.0 / 3}, 10), (std::vector<int>{4, 3, 3}));
  EXPECT_EQ(shares({0.1 + 0.2, 0.3, 0.4}, 1), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(shares({5, 0}, 5), (std::vector<int>{5, 0}));
  EXPECT_THROW(shares({1, 1}, 3), std::invalid_argument);
  EXPECT_THROW(shares({-1, 3}, 2), std::invalid_argument);
  EXPECT_THROW(shares({std::numeric_limits<double>::quiet_NaN(), 3}, 3), std::invalid_argument);
}

TEST(Apportion, adds_up_and_stays_within_one_of_each_share) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const int total = static_cast<int>(random() % 5000);
    std::vector<double> of(1 + random() % 40);
    for (double& x : of) x = std::uniform_real_distribution<double>(0, 1)(random);
    const double sum = std::accumulate(of.begin(), of.end(), 0.0);
    for (double& x : of) x *= total / sum;
    const auto whole = apportion(of, total);
    EXPECT_EQ(std::accumulate(whole.begin(), whole.end(), 0), total);
    for (std::size_t i = 0; i < of.size(); ++i) EXPECT_LT(std::abs(whole[i] - of[i]), 1 + 1e-6);
  }
}

TEST(Top, later_of_equals_and_no_number_is_worst) {
  const std::vector<float> scores = {9, 1, 3, kNan, 3, 3, 9};
  EXPECT_EQ(top(scores, 2, {1, 1}), (std::vector<std::int32_t>{4, 5}));
  EXPECT_EQ(top(scores, 4, {1, 1}), (std::vector<std::int32_t>{1, 2, 4, 5}));
  EXPECT_EQ(top(scores, 99, {1, 1}), (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(with_always_kept(top(scores, 1, {1, 1}), 7, {1, 1}), (std::vector<std::int32_t>{0, 5, 6}));
  EXPECT_TRUE(top(scores, 0, {}).empty());
}

TEST(Top, is_what_sorting_gives) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> kinds = {-kInfinity, -2, -1e-40F, -0.0F, 0.0F, 1e-40F, 0.5F, 2, kInfinity, kNan};
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(1 + random() % 40);
    for (float& x : scores) x = kinds[random() % kinds.size()];
    std::vector<std::int32_t> order(scores.size());
    std::iota(order.rbegin(), order.rend(), 0);  // descending positions
    const auto value = [&](std::int32_t i) {
      return std::isnan(scores[i]) ? std::pair(0, 0.0F) : std::pair(1, scores[i]);
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return value(a) > value(b); });
    const auto count = static_cast<int>(random() % (scores.size() + 1));
    std::vector<std::int32_t> want(order.begin(), order.begin() + count);
    std::sort(want.begin(), want.end());
    EXPECT_EQ(top(scores, count, {}), want) << round;
  }
}

TEST(TopOfLayer, counts_the_best_of_all_heads) {
  Scores scores(2, 4);
  std::ranges::copy(std::vector<float>{5, 1, 2, 7}, scores.head(0).begin());
  std::ranges::copy(std::vector<float>{5, 2, 6, 0}, scores.head(1).begin());
  EXPECT_EQ(top_of_layer(scores, 3, {}), (std::vector<int>{2, 1}));  // 7, 6, then 5 of the lower head
  EXPECT_EQ(top_of_layer(scores, 2, {1, 1}),
            (std::vector<int>{1, 1}));  // 6 at position 2; of the two 2s, the later position
  EXPECT_EQ(top_of_layer(scores, 8, {}), (std::vector<int>{4, 4}));
}

}  // namespace
}  // namespace winnow::policy
