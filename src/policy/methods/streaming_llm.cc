// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policy/methods/presets.h"
#include "winnow/error.h"

namespace winnow::policy::methods {

namespace {

/// Slot of the oldest entry after the sinks. A prompt's entries are stored in the order of their positions, and each
/// new token takes the slot of the oldest. So positions after the sinks ascend except for one step down, which a binary
/// search finds.
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

/// Effective positions are ranks, but no key is rotated for that. Recent keys and the query keep their rotations, so
/// their distances are right. For the sinks, at 0 … S - 1, the query is rotated from its position to the last rank.
/// This requires recent entries without a gap, which a lane has if the oldest one is evicted at every step.
void by_cache_index(const AttendView& view, std::span<cache::AttendPlan> plans) {
  for (int head = view.first_head; head < view.end_head; ++head) {
    const int length = view.lanes.length(head);
    const std::int64_t shift = static_cast<std::int64_t>(length) - 1 - view.position;
    if (shift == 0) continue;  // nothing has been evicted: rank and position agree
    const int sinks = std::min(view.terms.always_kept.sinks, length);
    plans[head] = {{0, sinks, shift}, {sinks, length, 0}};
  }
}

/// Positions of SinkCache in Hugging Face transformers 4.47 (issue 35350 there), where each token after the prompt is a
/// forward call without positions of its own. With C = B entries, the token at e = max(N, C - 1) is the first that
/// shifts the cache.
///   P(p) = p up to e, then C   position of p's query and key: the cache's length before its call. That is N at the
///                              first token after a longer prompt, since storing this token is what cuts the cache
///   r(p) = q - max(p, e - 1)   number of times that p's key has been rotated by -1 when q reads: once for each later
///                              token from e on. So a prompt's keys do not reach their ranks. Sinks stay: r = 0
/// The query at q has the distance P(q) - (P(p) - r(p)) from a key. Both are stored rotated to their positions in the
/// text, so the query is rotated by (P(q) - q) - (P(p) - p) + r(p): one number each for p < e, p = e and p > e.
void by_sink_cache(const AttendView& view, std::span<cache::AttendPlan> plans) {
  const std::int32_t query = view.position;
  const std::int32_t entries = view.terms.budget;
  const std::int32_t first_shift = std::max(view.terms.prompt.tokens, entries - 1);
  if (query < first_shift) return;
  const auto moved = [=](std::int32_t p) { return p > first_shift ? entries - p : 0; };  // P(p) - p
  const auto add_consecutive = [&](int head, int begin, int end) {
    while (begin < end) {
      const std::int32_t p = view.lanes.position(head, begin);
      const std::int32_t alike = p < first_shift ? first_shift - p : p == first_shift ? 1 : end - begin;
      const int next = std::min(end, begin + alike);
      plans[head].push_back({begin, next, moved(query) - moved(p) + query - std::max(p, first_shift - 1)});
      begin = next;
    }
  };
  for (int head = view.first_head; head < view.end_head; ++head) {
    const int length = view.lanes.length(head);
    const int sinks = std::min(view.terms.always_kept.sinks, length);
    const int turn = oldest(view.lanes, head, view.terms);
    plans[head] = {{0, sinks, moved(query)}};
    add_consecutive(head, sinks, turn);
    add_consecutive(head, turn, length);
  }
}

}  // namespace

/// StreamingLLM (Xiao et al., 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.2): the first
/// tokens, which get attention whatever their meaning, and the most recent ones.
///   sinks      first tokens that are always kept
///   positions  effective positions. cache: ranks, as in the authors' code; absolute: places in the text; sinkcache:
///              those of transformers' flawed implementation, for comparison
///   when       step: evicts at every decode step; prefill: only when the prompt has been read
Preset streaming_llm() {
  return {.name = "streaming-llm",
          .summary = "keeps the first tokens (attention sinks) and the most recent ones",
          .paper = "Xiao et al. 2023, Efficient Streaming Language Models with Attention Sinks",
          .options = {{"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                      {"positions", Option::Choice{"cache", {"cache", "absolute", "sinkcache"}},
                       "effective positions of entries: ranks in the cache, positions in the text, or the flawed ones "
                       "of SinkCache in transformers"},
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
            const bool as_sink_cache = options.text("positions") == "sinkcache";
            if (options.text("when") == "prefill") {
              if (as_sink_cache)
                throw UsageError("positions=sinkcache needs when=step: SinkCache evicts at every step");
              method.schedule = Schedule::once;
              method.positions = by_rank ? Positions::cache : Positions::absolute;
              return method;
            }
            method.schedule = Schedule::step;
            method.decoding.evict = {"the oldest entry after the sinks", oldest};
            if (by_rank)
              method.decoding.attend = {"to all kept entries; the query is rotated for the sinks", by_cache_index};
            if (as_sink_cache)
              method.decoding.attend = {"to all kept entries; the query is rotated to SinkCache's distances",
                                        by_sink_cache};
            return method;
          }};
}

}  // namespace winnow::policy::methods
