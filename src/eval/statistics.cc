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

/// Means of samples that are drawn with replacement, ascending. Indices are taken from the generator by remainder, so that every standard
/// library draws the same.
std::vector<double> drawn_means(std::span<const double> values, int draws) {
  std::mt19937_64 random(1);
  std::vector<double> out;
  for (int i = 0; i < draws; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < values.size(); ++j) sum += values[random() % values.size()];
    out.push_back(sum / static_cast<double>(values.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Mean mean_of(std::span<const double> values) {
  constexpr int kDraws = 2000;
  const auto means = drawn_means(values, kDraws);
  return {plain_mean(values), means[kDraws * 25 / 1000], means[kDraws * 975 / 1000 - 1]};
}

double paired_p(std::span<const double> a, std::span<const double> b) {
  constexpr int kDraws = 10000;
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  const auto means = drawn_means(differences, kDraws);
  const auto below = std::upper_bound(means.begin(), means.end(), 0.0) - means.begin();
  const auto above = means.end() - std::lower_bound(means.begin(), means.end(), 0.0);
  return std::min(1.0, 2 * static_cast<double>(std::min(below, above)) / kDraws);
}

}  // namespace winnow::eval
