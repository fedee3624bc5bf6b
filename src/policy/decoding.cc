// SPDX-License-Identifier: Apache-2.0
#include "policy/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/step.h"

namespace winnow::policy {

namespace {

/// Scores above the lowest of their head, since negative ones would rise as they fade.
Scores above_lowest(Scores scores) {
  for (int head = 0; head < scores.heads(); ++head) {
    float lowest = std::numeric_limits<float>::infinity();
    for (const float score : scores.head(head)) lowest = std::fmin(lowest, score);
    for (float& score : scores.head(head)) score -= lowest;
  }
  return scores;
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

}  // namespace

std::vector<Option> decoding_options() {
  return {{"decay", Option::Number{0.95, 0, 1}, "share of a score that is left after each step"}};
}

void evict_while_decoding(Method& method, const Options& options) {
  const auto decay = static_cast<float>(options.number("decay"));
  method.schedule = Schedule::step;
  method.lanes.columns = {"fading attention"};
  method.lanes.state = {"scores, from the lowest", [](const LayerView&, const Scores& scores, const AlwaysKept&) {
                          return std::vector{above_lowest(scores)};
                        }};
  method.decoding.step = {"the entry that has received the least lately",
                          [decay](const StepView& view) { fade_and_evict(view, decay); }};
}

}  // namespace winnow::policy
