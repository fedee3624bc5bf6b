// SPDX-License-Identifier: Apache-2.0
#include "policy/sliding_window.h"

#include <algorithm>

#include "policy/methods/presets.h"
#include "policy/views.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

namespace {

/// All tokens of a step are stored before the first of them reads, so a lane may have more entries than a query sees.
void by_position(const AttendView& view, std::span<cache::AttendPlan> plans) {
  for (int head = view.first_head; head < view.end_head; ++head) {
    if (view.lanes.length(head) > view.shape.window)
      add_positions(view.lanes, head, view.position - view.shape.window + 1, view.position + 1, plans[head]);
  }
}

Method make() {
  const Preset streaming = methods::streaming_llm();
  Options options(streaming.options);
  options.set("sinks", "0");
  options.set("positions", "absolute");
  Method out = streaming.build(options);
  out.name = "sliding window";
  out.decoding.attend = {"to the positions of the window", by_position};
  return out;
}

}  // namespace

const Method& sliding_window() {
  static const Method method = make();
  return method;
}

void add_positions(const cache::LayerLanes& lanes, int head, std::int32_t first, std::int32_t end,
                   cache::AttendPlan& plan) {
  int slot = 0;
  lanes.storage().for_each_run(head, [&](const cache::StoredEntry& at, int count) {
    const auto is_seen = [&](int i) { return at.position[i] >= first && at.position[i] < end; };
    for (int i = 0; i < count;) {
      const int from = i;
      while (i < count && is_seen(i)) ++i;
      if (i > from) cache::extend(plan, slot + from, slot + i);
      while (i < count && !is_seen(i)) ++i;
    }
    slot += count;
  });
}

bool holds_window(const cache::LayerLanes& lanes, int head, int window, int seen) {
  const int length = lanes.length(head);
  if (length != std::min(window, seen)) return false;
  const std::int32_t oldest = seen - length;
  const std::int32_t turned = lanes.position(head, 0) - oldest;
  if (turned < 0 || turned >= length || (length < window && turned != 0)) return false;
  for (int slot = 0; slot < length; ++slot) {
    if (lanes.position(head, slot) != oldest + (slot + turned) % length) return false;
  }
  return true;
}

}  // namespace winnow::policy
