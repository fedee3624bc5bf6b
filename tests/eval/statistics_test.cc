// SPDX-License-Identifier: Apache-2.0
#include "eval/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace winnow::eval {
namespace {

std::vector<double> normal(int n, double mean, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw(mean, 1);
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(draw(random));
  return out;
}

TEST(StatisticsTest, interval_is_that_of_the_normal_distribution) {
  const auto values = normal(400, 3, 1);
  const Mean mean = mean_of(values);
  double sum = 0;
  double squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  const double expected = sum / 400;
  const double half = 1.96 * std::sqrt((squares / 400 - expected * expected) / 400);
  EXPECT_DOUBLE_EQ(mean.value, expected);
  // With 2,000 draws, the ends vary by about 5 % of the interval's half width.
  EXPECT_NEAR(mean.low, expected - half, 0.15 * half);
  EXPECT_NEAR(mean.high, expected + half, 0.15 * half);
}

TEST(StatisticsTest, one_value_has_no_width) {
  const std::vector<double> one = {0.25};
  const Mean mean = mean_of(one);
  EXPECT_EQ(mean.low, 0.25);
  EXPECT_EQ(mean.high, 0.25);
  EXPECT_FALSE(mean.has_interval());
  EXPECT_TRUE(mean_of(std::vector<double>{0.25, 0.25}).has_interval()) << "two that agree do say something";
  EXPECT_FALSE(mean_of_means(std::vector<std::vector<double>>{{0.5, 1}, {0.25}}).has_interval());
}

TEST(StatisticsTest, groups_count_alike_whatever_their_size) {
  const Mean constant = mean_of_means(std::vector<std::vector<double>>{{1, 1, 1, 1}, {0}});
  EXPECT_EQ(constant.value, 0.5);
  EXPECT_EQ(constant.low, 0.5) << "each group is drawn by itself";
  EXPECT_EQ(constant.high, 0.5);
  // The variance of the mean of two groups' means is a quarter of the sum of theirs.
  const auto a = normal(400, 3, 1);
  const auto b = normal(100, 1, 2);
  const Mean of_a = mean_of(a);
  const Mean of_b = mean_of(b);
  const Mean both = mean_of_means(std::vector<std::vector<double>>{a, b});
  EXPECT_DOUBLE_EQ(both.value, (of_a.value + of_b.value) / 2);
  EXPECT_NEAR(both.high - both.low, std::hypot(of_a.high - of_a.low, of_b.high - of_b.low) / 2,
              0.15 * (both.high - both.low));
}

TEST(StatisticsTest, paired_differences_are_told) {
  const auto a = normal(100, 0, 2);
  auto b = a;
  EXPECT_EQ(paired_p(a, b), 1);
  for (double& x : b) x += 0.1;
  EXPECT_EQ(paired_p(a, b), 0) << "the same shift in every pair cannot be chance";
  const double p = paired_p(a, normal(100, 0, 3));
  EXPECT_GT(p, 0.01);
}

}  // namespace
}  // namespace winnow::eval
