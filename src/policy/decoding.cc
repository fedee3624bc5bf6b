// SPDX-License-Identifier: Apache-2.0
#include "policy/decoding.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "policy/step.h"

namespace winnow::policy {

namespace {

/// Shifts scores to begin at 0 and scales them to at most 1, the range of attention. Otherwise negative scores would be
/// evicted at the first step, and large ones would outlast any attention. Infinity becomes 1; minus infinity and NaN
/// become -1.
void bring_to_attention(std::span<float> scores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float lowest = kInfinity;
  float highest = -kInfinity;
  for (const float score : scores) {
    if (!std::isfinite(score)) continue;
    lowest = std::min(lowest, score);
    highest = std::max(highest, score);
  }
  const float most = std::max(1.0F, highest - lowest);
  for (float& score : scores) {
    if (std::isfinite(score)) {
      score = (score - lowest) / most;
    } else {
      score = score == kInfinity ? 1.0F : -1.0F;
    }
  }
}

std::vector<Scores> first_scores(const Scores& scores) {
  std::vector<Scores> out(1, scores);
  for (int head = 0; head < scores.heads(); ++head) bring_to_attention(out.front().head(head));
  return out;
}

void fade_and_evict(const StepView& view, float decay) {
  std::vector<float> attention;
  for (int head = view.first_head; head < view.end_head; ++head) {
    group_max(view, head, attention);
    view.lanes.for_each_span(head, [&](const cache::LaneSpan& stretch) {
      const float* now = attention.data() + stretch.first;
      for (float& score : stretch.column(0)) score = std::max(*now++, decay * score);
    });
    evict_down(view, head, [](const cache::LaneSpan& stretch, int i) { return stretch.column(0)[i]; });
  }
}

/// Extends what a method always keeps to the last `recent` tokens, which take at most half of the budget after the
/// sinks. Otherwise a token might be evicted before any other query has seen it.
AlwaysKept with_recent(AlwaysKept kept, int recent, const LayerPrompt& prompt, int budget) {
  const int most = std::min((budget - kept.sinks) / 2, prompt.tokens - kept.sinks);
  kept.recent = std::max(kept.recent, std::min(recent, most));
  return kept;
}

}  // namespace

std::vector<Option> decoding_options() {
  return {{"decay", Option::Number{0.95, 0, 1}, "factor by which scores are multiplied at each step"},
          {"recent", Option::Integer{8, 0, 65536},
           "last tokens that are always kept at least, but at most half of the budget after the sinks"}};
}

void evict_while_decoding(Method& method, const Options& options) {
  const auto decay = static_cast<float>(options.number("decay"));
  const int recent = options.integer("recent");
  const auto always_kept = method.selection.always_kept;
  method.selection.always_kept = {
      fmt::format("{}; at least {} last tokens, but at most half of the budget", always_kept.text, recent),
      [always_kept, recent](const LayerPrompt& prompt, int budget) {
        return with_recent(always_kept.call(prompt, budget), recent, prompt, budget);
      }};
  method.schedule = Schedule::step;
  method.lanes.columns = {"fading attention"};
  method.lanes.state = {"the selection's scores, shifted and scaled to at most 1",
                        [](const LayerView&, const Scores& scores, const AlwaysKept&) { return first_scores(scores); }};
  method.lanes.state_by_scores = true;
  method.decoding.step = {"the entry with the least recent attention",
                          [decay](const StepView& view) { fade_and_evict(view, decay); }};
}

}  // namespace winnow::policy
