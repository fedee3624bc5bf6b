// SPDX-License-Identifier: Apache-2.0
#include "policy/step.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

void group_max(const StepView& view, int kv_head, std::vector<float>& out) {
  const int group = view.shape.group();
  const auto first = view.attention(kv_head * group);
  out.assign(first.begin(), first.end());
  for (int g = 1; g < group; ++g) {
    const auto attention = view.attention(kv_head * group + g);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], attention[i]);
  }
}

namespace {

/// A query head's attention to its sink, raised to a power; 0 if it has none.
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

void evict_least(const StepView& view, int kv_head, std::span<const float> worth) {
  std::vector<Victim> victims;
  view.lanes.for_each_span(kv_head, [&](const cache::LaneSpan& stretch) {
    for (int i = 0; i < stretch.count(); ++i) {
      const int slot = stretch.first + i;
      if (evictable(view, stretch.positions[i])) victims.push_back({slot, worth[slot], stretch.positions[i]});
    }
  });
  std::ranges::sort(victims, [](const Victim& a, const Victim& b) { return a.before(b); });
  const int too_many = view.lanes.length(kv_head) - view.limit[kv_head];
  victims.resize(std::min(victims.size(), as_size(too_many)));
  // Removing an entry moves the lane's last one into its slot. From the last slot on, the moved entry is never a
  // victim.
  std::ranges::sort(victims, std::greater(), &Victim::slot);
  for (const auto& victim : victims) view.lanes.remove(kv_head, victim.slot);
}

Option buffer_option() {
  return {"buffer", Option::Integer{128, 1, 65536},
          "tokens by which a lane may exceed the budget while decoding, before it is cut back"};
}

}  // namespace winnow::policy
