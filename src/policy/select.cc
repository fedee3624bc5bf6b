#include "policy/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace winnow::policy {

std::vector<std::int32_t> top(std::span<const float> scores, int count, const Forced& forced) {
  const int n = static_cast<int>(scores.size());
  const int evictable = std::max(0, n - forced.total());
  count = std::clamp(count, 0, evictable);
  std::vector<std::int32_t> order(static_cast<std::size_t>(evictable));
  std::iota(order.begin(), order.end(), forced.sinks);
  const auto value = [&](std::int32_t j) {
    const float x = scores[static_cast<std::size_t>(j)];
    return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x;
  };
  const auto better = [&](std::int32_t a, std::int32_t b) {
    const float x = value(a);
    const float y = value(b);
    return x != y ? x > y : a > b;
  };
  if (count < evictable) std::nth_element(order.begin(), order.begin() + count, order.end(), better);
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<std::int32_t> keep(std::span<const float> scores, int tokens, int count, const Forced& forced) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(forced.sinks));
  std::iota(out.begin(), out.end(), 0);
  const auto selected = top(scores, count, forced);
  out.insert(out.end(), selected.begin(), selected.end());
  for (int j = tokens - forced.recent; j < tokens; ++j) out.push_back(j);
  return out;
}

}  // namespace winnow::policy
