// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policy/methods/presets.h"

namespace winnow::policy::methods {

namespace {

/// The oldest entry after the sinks. A prompt's entries are stored in the order of their positions, and each new token
/// takes the slot of the oldest. So after the sinks the positions ascend but for one step down, which a binary search
/// finds.
int oldest(const cache::LayerLanes& lanes, int head, const Terms& terms) {
  int low = std::min(terms.always_kept.sinks, lanes.length(head) - 1);
  int high = lanes.length(head) - 1;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (lanes.position(head, middle) > lanes.position(head, high)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Effective positions are ranks, and no key is rotated for that. Recent keys and the query keep their rotations, so
/// their distances are right. For the sinks, at 0 … S - 1, the query is rotated from its position to the last rank.
/// That needs recent entries without a gap, which a lane has where the oldest one is evicted at every step.
void by_cache_index(const AttendView& view, std::span<cache::AttendPlan> plans) {
  for (int head = view.first_head; head < view.end_head; ++head) {
    const int length = view.lanes.length(head);
    const std::int64_t shift = static_cast<std::int64_t>(length) - 1 - view.position;
    if (shift == 0) continue;  // nothing has been evicted: rank and position agree
    const int sinks = std::min(view.terms.always_kept.sinks, length);
    plans[head] = {{0, sinks, shift}, {sinks, length, 0}};
  }
}

}  // namespace

/// StreamingLLM (Xiao et al., 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.2): the first
/// tokens, which attention leans on whatever they say, and the most recent ones.
///   sinks      first tokens that stay
///   positions  effective positions: ranks in the cache, as the authors do, or absolute: those in the text
///   when       step: evicts at every decode step; prefill: only when the prompt has been read
Preset streaming_llm() {
  return {.name = "streaming-llm",
          .summary = "the first tokens (attention sinks) and the most recent ones",
          .paper = "Xiao et al. 2023, Efficient Streaming Language Models with Attention Sinks",
          .options = {{"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                      {"positions", Option::Choice{"cache", {"cache", "absolute"}},
                       "effective positions of entries: ranks in the cache, or positions in the text"},
                      {"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}},
          .build = [](const Options& options) {
            const int sinks = options.integer("sinks");
            Method method;
            method.selection.always_kept = {
                "the first " + std::to_string(sinks) + " tokens and as many recent ones as the budget leaves",
                [sinks](const LayerPrompt&, int budget) {
                  return AlwaysKept{std::min(sinks, budget), std::max(0, budget - sinks)};
                }};
            method.selection.least = {"the sinks", [sinks](const LayerPrompt&) { return sinks; }};
            const bool by_rank = options.text("positions") == "cache";
            if (options.text("when") == "prefill") {
              method.schedule = Schedule::once;
              method.positions = by_rank ? Positions::cache : Positions::absolute;
              return method;
            }
            method.schedule = Schedule::step;
            method.decoding.evict = {"the oldest entry after the sinks", oldest};
            if (by_rank)
              method.decoding.attend = {"to all that is kept; the query is rotated for the sinks", by_cache_index};
            return method;
          }};
}

}  // namespace winnow::policy::methods
