#include "policy/score.h"

#include <algorithm>
#include <vector>

namespace winnow::policy {

Reduce reduce_from(const std::string& name) { return name == "mean" ? Reduce::mean : name == "max" ? Reduce::max : Reduce::sum; }
Pool pool_from(const std::string& name) { return name == "mean" ? Pool::mean : Pool::max; }
Pad pad_from(const std::string& name) { return name == "count" ? Pad::count : Pad::valid; }

Scores reduce_group(const attention::Observation& observation, const attention::Shape& shape, Reduce reduce) {
  Scores out(shape.kv_heads, observation.size());
  const auto group = static_cast<float>(shape.group());
  for (int head = 0; head < shape.query_heads; ++head) {
    const auto from = observation.head(head);
    const auto into = out.head(head / shape.group());
    for (std::size_t j = 0; j < from.size(); ++j) into[j] = reduce == Reduce::max ? std::max(into[j], from[j]) : into[j] + from[j];
  }
  if (reduce == Reduce::mean) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      for (float& x : out.head(head)) x /= group;
    }
  }
  return out;
}

void pool(std::span<float> scores, const Pooling& how) {
  if (how.kernel == 1) return;
  const std::vector<float> from(scores.begin(), scores.end());
  const int n = static_cast<int>(from.size());
  const int half = how.kernel / 2;
  for (int j = 0; j < n; ++j) {
    const auto begin = from.begin() + std::max(0, j - half);
    const auto end = from.begin() + std::min(n, j + half + 1);
    float result = *begin;
    for (auto x = begin + 1; x != end; ++x) result = how.pool == Pool::max ? std::max(result, *x) : result + *x;
    if (how.pool == Pool::mean) result /= static_cast<float>(how.pad == Pad::valid ? end - begin : how.kernel);
    scores[static_cast<std::size_t>(j)] = result;
  }
}

void pool_evictable(Scores& scores, int heads, int tokens, const Forced& forced, const Pooling& how) {
  const int evictable = tokens - forced.total();
  if (evictable <= 0) return;
  for (int head = 0; head < heads; ++head) {
    pool(scores.head(head).subspan(static_cast<std::size_t>(forced.sinks), static_cast<std::size_t>(evictable)), how);
  }
}

}  // namespace winnow::policy
