// SPDX-License-Identifier: Apache-2.0
#include "eval/statistics.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace winnow::eval {

namespace {

double plain_mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Bootstrap means, ascending: each is the mean of the groups' means, with each group's samples drawn with replacement.
/// Indices are remainders of the generator's numbers, so that every standard library draws the same ones.
std::vector<double> drawn_means(std::span<const std::vector<double>> groups, int draws) {
  std::mt19937_64 random(1);
  std::vector<double> out;
  for (int i = 0; i < draws; ++i) {
    double sum = 0;
    for (const auto& values : groups) {
      double of_group = 0;
      for (std::size_t j = 0; j < values.size(); ++j) of_group += values[random() % values.size()];
      sum += of_group / static_cast<double>(values.size());
    }
    out.push_back(sum / static_cast<double>(groups.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Mean mean_of(std::span<const double> values) {
  const std::vector<double> one(values.begin(), values.end());
  return mean_of_means(std::span(&one, 1));
}

Mean mean_of_means(std::span<const std::vector<double>> groups) {
  constexpr int kDraws = 2000;
  std::vector<double> own;
  std::size_t least = groups.front().size();
  for (const auto& values : groups) {
    own.push_back(plain_mean(values));
    least = std::min(least, values.size());
  }
  const auto means = drawn_means(groups, kDraws);
  return {plain_mean(own), means[kDraws * 25 / 1000], means[kDraws * 975 / 1000 - 1], least};
}

double paired_p(std::span<const double> a, std::span<const double> b) {
  constexpr int kDraws = 10000;
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  const auto means = drawn_means(std::span(&differences, 1), kDraws);
  const auto below = std::upper_bound(means.begin(), means.end(), 0.0) - means.begin();
  const auto above = means.end() - std::lower_bound(means.begin(), means.end(), 0.0);
  return std::min(1.0, 2 * static_cast<double>(std::min(below, above)) / kDraws);
}

}  // namespace winnow::eval
