// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions shared by the references of methods: double precision, plain loops, directly from the definitions. Shares
// nothing with src/.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace winnow::reference {

/// Means of the queries of some query heads before RoPE, and of the lengths of their pairs.
struct QueryStatistics {
  std::vector<float> mean;          ///< [H_q][d]
  std::vector<float> mean_lengths;  ///< [H_q][d / 2]
};

using Matrix = std::vector<std::vector<double>>;  ///< [query row][key]

inline std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// Attention that each key gets from the query rows [from, to), summed.
inline std::vector<double> column_sums(const Matrix& a, int from, int to, int keys) {
  std::vector<double> out(z(keys));
  for (int i = from; i < to; ++i) {
    for (int j = 0; j < keys; ++j) out[j] += a[i][j];
  }
  return out;
}

/// Combines the group's numbers for each key.
inline std::vector<double> combined(const std::vector<std::vector<double>>& group, const std::string& gqa) {
  std::vector<double> out(group.front().size());
  for (std::size_t j = 0; j < out.size(); ++j) {
    double all = group.front()[j];
    for (std::size_t g = 1; g < group.size(); ++g) all = gqa == "max" ? std::max(all, group[g][j]) : all + group[g][j];
    out[j] = gqa == "mean" ? all / static_cast<double>(group.size()) : all;
  }
  return out;
}

inline std::vector<double> pooled(const std::vector<double>& score, int kernel, const std::string& pool,
                                  const std::string& pad) {
  const int n = static_cast<int>(score.size());
  std::vector<double> out(score.size());
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    double most = 0;
    int count = 0;
    for (int k = -(kernel / 2); k <= kernel / 2; ++k) {
      if (j + k < 0 || j + k >= n) continue;
      const double x = score[j + k];
      sum += x;
      most = count == 0 ? x : std::max(most, x);
      ++count;
    }
    out[j] = pool == "max" ? most : sum / (pad == "valid" ? count : kernel);
  }
  return out;
}

/// Positions in descending order of score; the later of equal ones comes first. score[i] belongs to position first + i.
inline std::vector<std::int32_t> ranking(const std::vector<double>& score, int first = 0) {
  std::vector<std::int32_t> order(score.size());
  for (std::size_t j = 0; j < order.size(); ++j) order[j] = first + static_cast<std::int32_t>(j);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const double x = score[a - first];
    const double y = score[b - first];
    return x != y ? x > y : a > b;
  });
  return order;
}

inline std::vector<std::int32_t> all_of(int n) {
  std::vector<std::int32_t> out;
  for (int j = 0; j < n; ++j) out.push_back(j);
  return out;
}

inline std::vector<std::int32_t> sorted(std::vector<std::int32_t> x) {
  std::sort(x.begin(), x.end());
  return x;
}

}  // namespace winnow::reference
