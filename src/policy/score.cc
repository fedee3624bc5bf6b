// SPDX-License-Identifier: Apache-2.0
#include "winnow/policy/score.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::policy {

namespace {

/// The larger of two numbers; NaN if either is NaN.
template <class T>
T larger(T a, T b) {
  return b > a || std::isnan(b) ? b : a;
}

/// Largest number within `half` places of each. One distance after the other, so that the compiler uses vectors.
void pool_by_max(std::span<const float> from, int half, std::span<float> out) {
  const int n = static_cast<int>(from.size());
  for (int j = 0; j < n; ++j) out[j] = from[std::max(0, j - half)];
  for (int distance = 1 - half; distance <= half; ++distance) {
    const int end = std::min(n, n - distance);
    for (int j = std::max(0, 1 - distance); j < end; ++j) out[j] = larger(out[j], from[j + distance]);
  }
}

/// `of_query_heads` has size() entries in each head.
template <class QueryHeads>
Scores reduced(const QueryHeads& of_query_heads, const attention::Shape& shape, Reduce reduce) {
  Scores out(shape.kv_heads, of_query_heads.size());
  const int group = shape.group();
  for (int head = 0; head < shape.kv_heads; ++head) {
    const auto into = out.head(head);
    for (std::size_t j = 0; j < into.size(); ++j) {
      double all = of_query_heads.head(head * group)[j];
      for (int g = 1; g < group; ++g) {
        const double x = of_query_heads.head(head * group + g)[j];
        all = reduce == Reduce::max ? larger(all, x) : all + x;
      }
      into[j] = static_cast<float>(reduce == Reduce::mean ? all / group : all);
    }
  }
  return out;
}

}  // namespace

Reduce reduce_from(const std::string& name) {
  return name == "mean" ? Reduce::mean : name == "max" ? Reduce::max : Reduce::sum;
}
Pool pool_from(const std::string& name) { return name == "mean" ? Pool::mean : Pool::max; }
Pad pad_from(const std::string& name) { return name == "count" ? Pad::count : Pad::valid; }

Scores reduce_group(const attention::ColumnStatistics& statistics, const attention::Shape& shape, Reduce reduce) {
  return reduced(statistics, shape, reduce);
}

Scores reduce_group(const Scores& of_query_heads, const attention::Shape& shape, Reduce reduce) {
  return reduced(of_query_heads, shape, reduce);
}

int odd_kernel(const Options& options) {
  const int kernel = options.integer("kernel");
  if (kernel % 2 == 0) throw UsageError("the kernel must be odd, so that it has a middle");
  return kernel;
}

void pool(std::span<float> scores, const Pooling& how) {
  if (how.kernel == 1) return;
  const std::vector<float> from(scores.begin(), scores.end());
  const int n = static_cast<int>(from.size());
  const int half = how.kernel / 2;
  if (how.pool == Pool::max) return pool_by_max(from, half, scores);
  for (int j = 0; j < n; ++j) {
    const auto begin = from.begin() + std::max(0, j - half);
    const auto end = from.begin() + std::min(n, j + half + 1);
    const double sum = std::accumulate(begin + 1, end, double{*begin});
    scores[j] = static_cast<float>(sum / static_cast<double>(how.pad == Pad::valid ? end - begin : how.kernel));
  }
}

void pool_evictable(Scores& scores, const AlwaysKept& always_kept, const Pooling& how) {
  const int evictable = scores.size() - always_kept.total();
  if (evictable <= 0) return;
  for (int head = 0; head < scores.heads(); ++head) {
    pool(scores.head(head).subspan(always_kept.sinks, as_size(evictable)), how);
  }
}

}  // namespace winnow::policy
