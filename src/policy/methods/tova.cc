// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/as_size.h"
#include "policy/methods/presets.h"
#include "policy/step.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// The same score for all heads, so that they keep one set.
Scores mean_of_layer(const LayerView& view, const attention::ColumnStatistics& seen) {
  Scores out(view.shape.kv_heads, seen.size());
  for (int j = 0; j < seen.size(); ++j) {
    double sum = 0;
    for (int head = 0; head < view.shape.query_heads; ++head) sum += seen.head(head)[j];
    for (int head = 0; head < view.shape.kv_heads; ++head)
      out.head(head)[j] = static_cast<float>(sum / view.shape.query_heads);
  }
  return out;
}

/// All lanes of a layer evict the same entries, so slot s is the same token in each of them.
void keep_attended(const StepView& view) {
  const auto length = as_size(view.lanes.length(0));
  std::vector<float> mean(length);
  for (int head = 0; head < view.shape.query_heads; ++head) {
    const auto attention = view.attention(head);
    for (std::size_t slot = 0; slot < length; ++slot) mean[slot] += attention[slot];
  }
  // A step evicts one entry at most. So `mean` stays valid, although removing an entry moves the last one.
  for (int head = view.first_head; head < view.end_head; ++head)
    evict_down(view, head, [&](const cache::LaneSpan& stretch, int i) { return mean[stretch.first + i]; });
}

}  // namespace

/// TOVA (Oren et al., 2024, "Transformers are Multi-State RNNs", section 3.2): entries are ranked by the current
/// query's attention, one ranking for all heads of a layer.
///   when  step: evicts at every decode step; prefill: only when the prompt has been read
Preset tova() {
  return {
      .name = "tova",
      .summary = "keeps the entries that the current query attends to most, the same ones in all heads of a layer",
      .paper = "Oren et al. 2024, Transformers are Multi-State RNNs",
      .options = {{"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}},
      .build = [](const Options& options) {
        Method method;
        const auto attention = method.observers.add(observe_last(1), {.ranking = true});
        method.one_set_per_layer = true;
        method.selection.always_kept = {"the current token", [](const LayerPrompt&, int) { return AlwaysKept{0, 1}; }};
        method.selection.least = {"the current token", [](const LayerPrompt&) { return 1; }};
        method.selection.score = {
            "attention of the last query, mean over all heads of the layer",
            [attention](const LayerView& view, const AlwaysKept&) { return mean_of_layer(view, view[attention]); }};
        method.schedule = Schedule::once;
        if (options.text("when") == "prefill") return method;
        method.schedule = Schedule::step;
        method.decoding.step = {"the entry that the current query attends to least", keep_attended};
        return method;
      }};
}

}  // namespace winnow::policy::methods
