#pragma once

// The methods in double precision and plain loops, straight from their definitions. Shares nothing with src/.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace winnow::reference {

using Matrix = std::vector<std::vector<double>>;  ///< [query row][key]

/// SnapKV's kept set of one KV head from the attention of its G query heads (each [N][N], causal, softmax rows).
inline std::vector<std::int32_t> snapkv(const std::vector<Matrix>& group, int budget, int window, int kernel, const std::string& pool, const std::string& pad,
                                        const std::string& gqa) {
  const int n = static_cast<int>(group.front().size());
  std::vector<std::int32_t> kept;
  if (n <= budget) {
    for (int j = 0; j < n; ++j) kept.push_back(j);
    return kept;
  }
  const int evictable = n - window;
  std::vector<double> score(static_cast<std::size_t>(evictable));
  for (int j = 0; j < evictable; ++j) {
    double all = 0;
    for (const auto& a : group) {
      double sum = 0;
      for (int i = n - window; i < n; ++i) sum += a[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      all = gqa == "max" ? std::max(all, sum) : all + sum;
    }
    score[static_cast<std::size_t>(j)] = gqa == "mean" ? all / static_cast<double>(group.size()) : all;
  }
  std::vector<double> pooled(score.size());
  for (int j = 0; j < evictable; ++j) {
    double sum = 0;
    double most = 0;
    int count = 0;
    for (int k = -(kernel / 2); k <= kernel / 2; ++k) {
      if (j + k < 0 || j + k >= evictable) continue;
      const double x = score[static_cast<std::size_t>(j + k)];
      sum += x;
      most = count == 0 ? x : std::max(most, x);
      ++count;
    }
    pooled[static_cast<std::size_t>(j)] = pool == "max" ? most : sum / (pad == "valid" ? count : kernel);
  }
  // The best first; of equals the later.
  std::vector<std::int32_t> order(pooled.size());
  for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<std::int32_t>(j);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const double x = pooled[static_cast<std::size_t>(a)];
    const double y = pooled[static_cast<std::size_t>(b)];
    return x != y ? x > y : a > b;
  });
  kept.assign(order.begin(), order.begin() + (budget - window));
  for (int j = evictable; j < n; ++j) kept.push_back(j);
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// StreamingLLM's: the first `sinks` and the last of the budget.
inline std::vector<std::int32_t> streaming(int n, int budget, int sinks) {
  std::vector<std::int32_t> kept;
  for (int j = 0; j < n; ++j) {
    if (n <= budget || j < sinks || j >= n - (budget - sinks)) kept.push_back(j);
  }
  return kept;
}

}  // namespace winnow::reference
