// SPDX-License-Identifier: Apache-2.0
#include "policy/step.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace winnow::policy {

void group_mean(const StepView& view, int kv_head, std::vector<float>& out, int first) {
  const int group = view.shape.group();
  out.assign(view.lanes.entries(kv_head) - first, 0.0F);
  for (int g = 0; g < group; ++g) {
    const float* const attention = view.attention(kv_head * group + g).data() + first;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += attention[i];
  }
  for (float& x : out) x /= static_cast<float>(group);
}

namespace {

/// What is left of a query head's attention for its sink, to a power; 0 where there is none.
double raised_sink(const StepView& view, int query_head, double gain) {
  if (view.shape.sink_logits.empty()) return 0;
  const auto p = view.attention(query_head);
  return std::pow(std::max(0.0, 1 - std::accumulate(p.begin(), p.end(), 0.0)), gain);
}

}  // namespace

void group_mean_raised(const StepView& view, int kv_head, double gain, std::vector<float>& out) {
  const int group = view.shape.group();
  std::vector<double> sum(view.lanes.entries(kv_head));
  for (int g = 0; g < group; ++g) {
    std::vector<double> raised;
    for (const float p : view.attention(kv_head * group + g)) raised.push_back(std::pow(static_cast<double>(p), gain));
    const double of_sink = raised_sink(view, kv_head * group + g, gain);
    const double all = std::accumulate(raised.begin(), raised.end(), of_sink) * group;
    if (!(all > 0)) continue;
    for (std::size_t slot = 0; slot < sum.size(); ++slot) sum[slot] += raised[slot] / all;
  }
  out.assign(sum.begin(), sum.end());
}

void add_to_column(const StepView& view, int kv_head, int column, const std::vector<float>& addend) {
  view.lanes.for_each_span(kv_head, [&](const cache::LaneSpan& stretch) {
    const auto into = stretch.column(column);
    const float* const from = addend.data() + stretch.first;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
  });
}

}  // namespace winnow::policy
