// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/as_size.h"
#include "policy/apportion.h"
#include "policy/methods/presets.h"
#include "policy/step.h"
#include "winnow/error.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// Number of queries that have seen the entry at `position`, for a last query at `last`.
float seen_by(std::int32_t position, std::int32_t last) { return static_cast<float>(last - position + 1); }

Scores by_count(Scores scores, const LayerView& view) {
  const auto positions = view.scratch.positions();
  for (int head = 0; head < scores.heads(); ++head) {
    for (std::size_t j = 0; j < positions.size(); ++j) scores.head(head)[j] /= seen_by(positions[j], positions.back());
  }
  return scores;
}

/// Adds each query's attention to the entries' sums. If a lane is too long, evicts the entry with the smallest sum.
void accumulate(const StepView& view, bool count) {
  std::vector<float> attention;
  for (int head = view.first_head; head < view.end_head; ++head) {
    group_mean(view, head, attention);
    add_to_column(view, head, 0, attention);
    evict_down(view, head, [&](const cache::LaneSpan& stretch, int i) {
      const auto at = as_size(i);
      return stretch.column(0)[at] / (count ? seen_by(stretch.positions[at], view.position) : 1.0F);
    });
  }
}

}  // namespace

/// H2O (Zhang et al., 2023, "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
/// section 4): the score of an entry is the attention that it has received from all queries so far, the prompt's and
/// the answer's.
///   heavy, recent  weights by which heavy hitters and the last tokens share the budget after the sinks
///   normalize      count: divides by the number of queries that could see the entry
///   sinks          first tokens that are always kept
///   gqa            how scores are combined over the query heads of a KV head when the prompt ends
///   when           step: evicts at every decode step; prefill: only when the prompt has been read
Preset h2o() {
  return {.name = "h2o",
          .summary = "keeps the entries with the most attention so far (heavy hitters), and the last tokens",
          .paper =
              "Zhang et al. 2023, H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
          .options =
              {{"heavy", Option::Number{1, 0, 1000}, "weight of the heavy hitters' share of the budget"},
               {"recent", Option::Number{1, 0, 1000}, "weight of the last tokens' share of the budget"},
               {"normalize", Option::Choice{"none", {"none", "count"}},
                "divisor of the received attention: none, or the number of queries that could see the entry (count)"},
               {"sinks", Option::Integer{0, 0, 65536}, "first tokens that are always kept"},
               {"gqa", Option::Choice{"mean", {"mean", "max", "sum"}},
                "reduction over the query heads of a KV head, after the prompt"},
               {"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}},
          .build = [](const Options& options) {
            const double heavy = options.number("heavy");
            const double recent = options.number("recent");
            const int sinks = options.integer("sinks");
            const bool count = options.text("normalize") == "count";
            const Reduce gqa = reduce_from(options.text("gqa"));
            if (heavy + recent <= 0)
              throw UsageError("heavy=0 and recent=0 leave nothing to keep: one of them must be above 0");
            Method method;
            const auto attention =
                method.observers.add(observe_all(), {.ranking = true, .state = options.text("when") == "step"});
            method.selection.always_kept = {
                "the sinks and the last tokens' share", [=](const LayerPrompt&, int budget) {
                  const int left = std::max(0, budget - sinks);
                  const double share = left / (heavy + recent);
                  return AlwaysKept{std::min(sinks, budget),
                                    apportion(std::vector<double>{heavy * share, recent * share}, left)[1]};
                }};
            method.selection.least = {"the sinks", [sinks](const LayerPrompt&) { return sinks; }};
            method.selection.score = {
                std::string("attention received from all queries") + (count ? ", divided by their number" : ""),
                [attention, gqa, count](const LayerView& view, const AlwaysKept&) {
                  Scores sums = reduce_group(view[attention], view.shape, gqa);
                  return count ? by_count(std::move(sums), view) : sums;
                }};
            method.schedule = Schedule::once;
            if (options.text("when") == "prefill") return method;
            method.schedule = Schedule::step;
            method.lanes.columns = {"attention received"};
            method.lanes.state = {"attention received",
                                  [attention, gqa](const LayerView& view, const Scores&, const AlwaysKept&) {
                                    return std::vector{reduce_group(view[attention], view.shape, gqa)};
                                  }};
            method.decoding.step = {"the entry with the least attention so far",
                                    [count](const StepView& view) { accumulate(view, count); }};
            return method;
          }};
}

}  // namespace winnow::policy::methods
