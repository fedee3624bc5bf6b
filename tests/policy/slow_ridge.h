// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace winnow::test {

/// Ridge regression of one target by the normal equations of centred data, solved by elimination with pivots, in double
/// precision. Shares nothing with src/.
struct SlowRidge {
  std::vector<double> weights;
  double bias = 0;
  double explained = 0;  ///< share of the target's variance that is explained

  SlowRidge(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets, double alpha) {
    const std::size_t n = rows.size();
    const std::size_t d = rows.front().size();
    std::vector<double> mean(d);
    double target_mean = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < d; ++j) mean[j] += rows[i][j] / static_cast<double>(n);
      target_mean += targets[i] / static_cast<double>(n);
    }
    std::vector<std::vector<double>> a(d, std::vector<double>(d + 1));
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t i = 0; i < n; ++i) {
        const double x = rows[i][j] - mean[j];
        for (std::size_t k = 0; k < d; ++k) a[j][k] += x * (rows[i][k] - mean[k]);
        a[j][d] += x * (targets[i] - target_mean);
      }
      a[j][j] += alpha;
    }
    for (std::size_t c = 0; c < d; ++c) {
      std::size_t pivot = c;
      for (std::size_t r = c; r < d; ++r) {
        if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
      }
      std::swap(a[c], a[pivot]);
      for (std::size_t r = 0; r < d; ++r) {
        if (r == c) continue;
        const double factor = a[r][c] / a[c][c];
        for (std::size_t k = c; k <= d; ++k) a[r][k] -= factor * a[c][k];
      }
    }
    bias = target_mean;
    for (std::size_t j = 0; j < d; ++j) {
      weights.push_back(a[j][d] / a[j][j]);
      bias -= weights[j] * mean[j];
    }
    double left = 0;
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      left += std::pow(targets[i] - of(rows[i]), 2);
      all += std::pow(targets[i] - target_mean, 2);
    }
    explained = 1 - left / all;
  }

  double of(const std::vector<double>& row) const {
    double out = bias;
    for (std::size_t j = 0; j < row.size(); ++j) out += weights[j] * row[j];
    return out;
  }
};

}  // namespace winnow::test
