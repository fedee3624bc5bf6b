// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "base/as_size.h"
#include "policy/calibrations/predicted_scores.h"
#include "policy/methods/presets.h"
#include "policy/observers/predicted.h"
#include "policy/rows.h"
#include "policy/step.h"

namespace winnow::policy::methods {

namespace {

/// The always kept last tokens take at most half of the budget after the sinks.
AlwaysKept ends_of(int tokens, int budget, const AlwaysKept& ends) {
  const int sinks = std::min({ends.sinks, tokens, budget});
  return {sinks, std::min({ends.recent, tokens - sinks, (budget - sinks) / 2})};
}

void keep_predicted(const StepView& view) {
  for (int head = view.first_head; head < view.end_head; ++head)
    evict_down(view, head, [](const cache::LaneSpan& stretch, int i) { return stretch.column(0)[as_size(i)]; });
}

}  // namespace

/// KVzap (Jegou and Jeblick, 2026, "KVzap: Fast, Adaptive, and Faithful KV Cache Pruning", section 3): a linear map of
/// a token's row of the layer's input predicts the logarithm of its KVzip+ score. The map is in the session's
/// calibration.
///   sinks   first tokens that are always kept
///   recent  last tokens that are always kept, at most half of the budget after the sinks
///   when    prefill: evicts when the prompt has been read; step: at every decode step, too
Preset kvzap() {
  return {.name = "kvzap",
          .summary =
              "keeps the entries that the model would attend to if it repeated the text, as predicted by a calibration",
          .paper = "Jegou and Jeblick 2026, KVzap: Fast, Adaptive, and Faithful KV Cache Pruning",
          .options = {{"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                      {"recent", Option::Integer{128, 0, 65536},
                       "last tokens that are always kept, at most half of the budget after the sinks"},
                      {"when", Option::Choice{"prefill", {"prefill", "step"}}, "when entries are evicted"}},
          .build = [](const Options& options) {
            const AlwaysKept ends{options.integer("sinks"), options.integer("recent")};
            Method method;
            const bool steps = options.text("when") == "step";
            const auto predicted = method.observers.add(observe_predictions(), {.ranking = true, .state = steps});
            rank_by(method, "the calibration's prediction from the row that enters attention", ends.sinks,
                    [predicted](const LayerView& view, const AlwaysKept&) { return view[predicted]; });
            method.selection.always_kept = {
                fmt::format("the first {} tokens and the last {}", ends.sinks, ends.recent),
                [ends](const LayerPrompt& prompt, int budget) { return ends_of(prompt.tokens, budget, ends); }};
            method.calibration = predicted_scores();
            method.selection.signed_scores = true;
            if (!steps) return method;
            method.schedule = Schedule::step;
            method.lanes.columns = {"predicted score"};
            method.lanes.state = {"predicted score",
                                  [predicted](const LayerView& view, const Scores&, const AlwaysKept&) {
                                    return std::vector{view[predicted]};
                                  }};
            method.decoding.step = {"the entry with the lowest score", keep_predicted};
            method.decoding.step_sees_attention = false;
            method.decoding.predicted_column = 0;
            return method;
          }};
}

}  // namespace winnow::policy::methods
