// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/views.h"
#include "winnow/policy/options.h"

/// Building blocks of methods that evict at every step.
namespace winnow::policy {

/// Mean attention of a KV head's query heads, by slot, then by merged entry, [entries - first].
void group_mean(const StepView& view, int kv_head, std::vector<float>& out, int first = 0);

/// The maximum instead of the mean, [entries].
void group_max(const StepView& view, int kv_head, std::vector<float>& out);

/// The mean, with the logits of each head multiplied by `gain` before the softmax.
void group_mean_raised(const StepView& view, int kv_head, double gain, std::vector<float>& out);

/// Adds to a column of a lane, by slot.
void add_to_column(const StepView& view, int kv_head, int column, const std::vector<float>& addend);

/// True if an entry may be evicted: it is neither one of the first `sinks` positions nor one of the `recent` last.
inline bool evictable(const StepView& view, std::int32_t position) {
  return position >= view.terms.always_kept.sinks && position <= view.position - view.terms.always_kept.recent;
}

/// An entry that may be evicted. before() orders by worth, NaN first; ties go to the earlier position.
struct Victim {
  int slot = -1;
  float worth = 0;
  std::int32_t position = 0;

  bool before(const Victim& other) const {
    if (other.slot < 0 || std::isnan(worth) != std::isnan(other.worth)) return other.slot < 0 || std::isnan(worth);
    return worth != other.worth && !std::isnan(worth) ? worth < other.worth : position < other.position;
  }
};

/// The evictable entry of least worth; slot -1 if there is none. worth(stretch, i): worth of the i-th entry of a
/// stretch.
template <class Worth>
Victim victim_of(const StepView& view, int kv_head, const Worth& worth) {
  Victim victim;
  view.lanes.for_each_span(kv_head, [&](const cache::LaneSpan& stretch) {
    for (int i = 0; i < stretch.count(); ++i) {
      const auto position = stretch.positions[i];
      if (!evictable(view, position)) continue;
      const Victim candidate{stretch.first + i, worth(stretch, i), position};
      if (candidate.before(victim)) victim = candidate;
    }
  });
  return victim;
}

inline bool too_long(const StepView& view, int kv_head) { return view.lanes.length(kv_head) > view.limit[kv_head]; }

/// Evicts the entries of least worth until the lane is within its limit.
template <class Worth>
void evict_down(const StepView& view, int kv_head, const Worth& worth) {
  while (too_long(view, kv_head)) {
    const Victim victim = victim_of(view, kv_head, worth);
    if (victim.slot < 0) return;
    view.lanes.remove(kv_head, victim.slot);
  }
}

/// True if a lane has reached its greatest length.
inline bool is_full(const StepView& view, int kv_head, int buffer) {
  return view.lanes.length(kv_head) >= view.limit[kv_head] + buffer;
}

/// Evicts all surplus entries of a lane at once, by the worth of each slot, [length].
void evict_least(const StepView& view, int kv_head, std::span<const float> worth);

/// Option `buffer` of methods that evict every few steps.
Option buffer_option();

}  // namespace winnow::policy
