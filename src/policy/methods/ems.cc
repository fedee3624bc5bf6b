// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "policy/demotion.h"
#include "policy/methods/presets.h"
#include "policy/observers/columns.h"
#include "policy/step.h"
#include "policy/window.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// Columns of an entry's attention: of all queries, of the previous window's, and of this window's.
enum Column : std::uint8_t { kAll, kPast, kCurrent, kColumns };

enum class Kind : std::uint8_t { global, local, both };

struct EmsRule {
  WindowLength window;
  attention::Reduction rows;  ///< of the window's rows
  Reduce gqa;
  Kind kind;
  bool halves;
  Pooling pooling;
  Merging merging;

  /// Equation 3; `ratio` scales the global part to the size of the local one.
  double score(double global, double local, double ratio) const {
    return kind == Kind::global ? global : kind == Kind::local ? local : std::max(global * ratio, local);
  }
};

using attention::QueryRowSet;

/// Results for all queries and for the window's.
struct Attention {
  ResultPlace<attention::ColumnStatistics> all;
  ResultPlace<attention::ColumnStatistics> window;
};

attention::ColumnRequest global_rows(const EmsRule& rule, const LayerPrompt& prompt, int budget) {
  QueryRowSet global{QueryRowSet::Kind::all, 0, {}};
  if (rule.halves && budget < prompt.tokens) {
    global.kind = QueryRowSet::Kind::listed;
    for (int i = 0; i < prompt.tokens; ++i) {
      if (i < budget / 2 || i >= prompt.tokens - budget / 2) global.list.push_back(i);
    }
  }
  return {global, attention::Reduction::sum};
}

attention::ColumnRequest window_rows(const EmsRule& rule, const LayerPrompt& prompt, int budget) {
  return {{QueryRowSet::Kind::last, std::min(rule.window.observed(prompt, budget), prompt.tokens), {}}, rule.rows};
}

Attention observe(const EmsRule& rule, UsedBy used_by, Observers& observers) {
  return {
      observers.add(
          observe_columns(rule.halves ? "sum of the attention of the first and last half-budget of queries"
                                      : "sum of the attention of all queries",
                          [rule](const LayerPrompt& prompt, int budget) { return global_rows(rule, prompt, budget); }),
          used_by),
      observers.add(
          observe_columns("attention of the window's queries",
                          [rule](const LayerPrompt& prompt, int budget) { return window_rows(rule, prompt, budget); }),
          used_by)};
}

double sum(std::span<const float> x) { return std::reduce(x.begin(), x.end(), 0.0); }

Scores score(const EmsRule& rule, const LayerView& view, const Attention& seen, const AlwaysKept& always_kept) {
  Scores scores = reduce_group(view[seen.all], view.shape, rule.gqa);
  const Scores local = reduce_group(view[seen.window], view.shape, rule.gqa);
  for (int head = 0; head < scores.heads(); ++head) {
    const auto all = scores.head(head);
    const double global_sum = sum(all);
    const double ratio = global_sum > 0 ? sum(local.head(head)) / global_sum : 0;
    for (std::size_t j = 0; j < all.size(); ++j)
      all[j] = static_cast<float>(rule.score(all[j], local.head(head)[j], ratio));
  }
  pool_evictable(scores, always_kept, rule.pooling);
  return scores;
}

/// One lane while decoding: its entries and then its merged entries, with their attention and scores.
class ScoredLane {
 public:
  ScoredLane(const EmsRule& rule, const StepView& view, int head) : rule_(rule), view_(view), head_(head) {}

  void step() {
    receive();
    if (too_long(view_, head_)) demote_a_centre();
    trim_merged_entries();
    const LayerPrompt& prompt = view_.terms.prompt;
    if ((view_.position - prompt.tokens + 1) % rule_.window.observed(prompt, view_.terms.budget) == 0) begin_window();
  }

 private:
  template <class Each>
  void for_each_block(const Each& each) {
    auto& merged_entries = view_.lanes.merged_entries(head_);
    view_.lanes.for_each_span(head_, [&](const cache::LaneSpan& s) {
      each(as_size(s.first), s.column(kAll), s.column(kPast), s.column(kCurrent));
    });
    each(as_size(view_.lanes.length(head_)), merged_entries.column(kAll), merged_entries.column(kPast),
         merged_entries.column(kCurrent));
  }

  void receive() {
    std::vector<float> attention;
    group_mean(view_, head_, attention);
    for_each_block([&](std::size_t first, std::span<float> all, std::span<float>, std::span<float> current) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] += attention[first + i];
        current[i] += attention[first + i];
      }
    });
  }

  void begin_window() {
    for_each_block([](std::size_t, std::span<float>, std::span<float> past, std::span<float> current) {
      std::copy(current.begin(), current.end(), past.begin());
      std::fill(current.begin(), current.end(), 0.0F);
    });
  }

  /// Factor that scales the global part to the size of the local one.
  double ratio() {
    double global = 0;
    double local = 0;
    for_each_block([&](std::size_t, std::span<float> all, std::span<float> past, std::span<float> current) {
      global += sum(all);
      local += sum(past) + sum(current);
    });
    return global > 0 ? local / global : 0;
  }

  double score(float all, float past, float current, double ratio) const {
    return rule_.score(all, static_cast<double>(past) + current, ratio);
  }
  double score_of_merged_entry(int i, double ratio) {
    auto& merged_entries = view_.lanes.merged_entries(head_);
    const auto at = as_size(i);
    return score(merged_entries.column(kAll)[at], merged_entries.column(kPast)[at], merged_entries.column(kCurrent)[at],
                 ratio);
  }
  /// Score of an entry by slot or, after the slots, of a merged entry; without pooling.
  double score_of(int entry, double ratio) {
    const auto& lanes = view_.lanes;
    const int own = lanes.length(head_);
    if (entry >= own) return score_of_merged_entry(entry - own, ratio);
    return score(lanes.state(head_, kAll, entry), lanes.state(head_, kPast, entry), lanes.state(head_, kCurrent, entry),
                 ratio);
  }

  void demote_a_centre() {
    const double all_ratio = ratio();
    const Victim victim = victim_of(view_, head_, [&](const cache::LaneSpan& stretch, int i) {
      const auto at = as_size(i);
      return static_cast<float>(
          score(stretch.column(kAll)[at], stretch.column(kPast)[at], stretch.column(kCurrent)[at], all_ratio));
    });
    if (victim.slot < 0) return;
    Demotion(rule_.merging, view_, head_, [&](int entry) { return score_of(entry, all_ratio); }).demote(victim.slot);
  }

  /// Evicts the merged entries of least worth until there is room; ties go to the earliest.
  void trim_merged_entries() {
    const int room = rule_.merging.room(view_.limit[head_]);
    auto& merged_entries = view_.lanes.merged_entries(head_);
    while (merged_entries.count() > room) {
      const double all_ratio = ratio();
      Victim victim;
      for (int i = 0; i < merged_entries.count(); ++i) {
        const Victim candidate{i, static_cast<float>(score_of_merged_entry(i, all_ratio)),
                               merged_entries.positions()[i]};
        if (candidate.before(victim)) victim = candidate;
      }
      view_.lanes.remove_merged_entry(head_, victim.slot);
    }
  }

  const EmsRule& rule_;
  const StepView& view_;
  int head_;
};

EmsRule rule_from(const Options& options) {
  EmsRule rule{};
  rule.window = window_length(options);
  rule.rows = reduction_from(options.text("rows"));
  rule.gqa = reduce_from(options.text("gqa"));
  const auto& kind = options.text("score");
  rule.kind = kind == "glo" ? Kind::global : kind == "loc" ? Kind::local : Kind::both;
  rule.halves = options.text("observe") == "halves";
  rule.pooling = {Pool::mean, odd_kernel(options), Pad::valid};
  Merging& merging = rule.merging;
  merging.gamma = options.text("merge") == "on" ? options.number("gamma") : 1;
  merging.tau = options.number("tau");
  const auto& compare = options.text("similarity");
  merging.compare = compare == "key" ? Compare::key : compare == "value" ? Compare::value : Compare::both;
  merging.clamp = options.text("clamp") == "on";
  merging.rotated = options.text("redundancy") == "rotated";
  merging.normalize = options.text("normalize") == "on";
  merging.merged = options.text("positions") == "merged" ? Merged::into_centre : Merged::as_entry;
  return rule;
}

std::vector<Option> options() {
  const Option::Choice on{"on", {"on", "off"}};
  const Option::Choice off{"off", {"on", "off"}};
  std::vector<Option> out =
      window_length_options("last tokens, which are always kept, and whose queries give the local score");
  std::vector<Option> more = {
      rows_option(),
      gqa_option(),
      {"gamma", Option::Number{4, 1, 1e6}, "centres and merged entries for each entry of the budget"},
      {"tau", Option::Number{0.6, -1, 2}, "least similarity at which an entry is merged; from 1 on nothing is merged"},
      {"kernel", Option::Integer{7, 1, 1025}, "length of the mean pooling of the prompt's scores"},
      {"score", Option::Choice{"glo-loc", {"glo", "loc", "glo-loc"}},
       "attention of all queries, of the window's, or the larger of the two"},
      {"observe", Option::Choice{"all", {"all", "halves"}},
       "queries of the global score: all, or the first and the last, as many as half of the budget each"},
      {"similarity", Option::Choice{"kv", {"key", "value", "kv"}}, "vectors that are compared: keys, values or both"},
      {"redundancy", Option::Choice{"raw", {"raw", "rotated"}}, "whether keys are compared before or after RoPE"},
      {"clamp", off, "on: cosines below 0 count as 0"},
      {"merge", on, "off: nothing is merged"},
      {"normalize", on, "off: a class's direction keeps the length of the mean"},
      {"positions", Option::Choice{"kept", {"kept", "cache", "merged"}},
       "positions of merged entries: in the text, or ranks in the cache; merged: those of their centres"},
      {"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}};
  std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

void decode_by_scores(Method& method, const Attention& seen, const EmsRule& rule) {
  method.schedule = Schedule::step;
  method.lanes.columns = {"attention of all queries", "of the window before", "of this window"};
  method.lanes.state = {"attention of all queries and of the window's",
                        [rule, seen](const LayerView& view, const Scores&, const AlwaysKept&) {
                          const Scores none(view.shape.kv_heads, view.tokens());
                          return std::vector{reduce_group(view[seen.all], view.shape, rule.gqa),
                                             reduce_group(view[seen.window], view.shape, rule.gqa), none};
                        }};
  method.decoding.step = {"the centre with the lowest score, which is merged into another or evicted",
                          [rule](const StepView& view) {
                            for (int head = view.first_head; head < view.end_head; ++head)
                              ScoredLane(rule, view, head).step();
                          }};
}

Method build_ems(const Options& options) {
  const EmsRule rule = rule_from(options);
  const std::string& positions = options.text("positions");
  Method method;
  const auto seen = observe(rule, {.ranking = true, .state = options.text("when") == "step"}, method.observers);
  method.selection.always_kept = {"the window", [rule](const LayerPrompt& prompt, int budget) {
                                    return AlwaysKept{0, std::min(rule.window.kept(prompt, budget), budget)};
                                  }};
  method.selection.least = {"the window", [rule](const LayerPrompt& prompt) { return rule.window.least(prompt); }};
  method.selection.score = {"attention of " + options.text("score") + ", mean-pooled",
                            [rule, seen](const LayerView& view, const AlwaysKept& always_kept) {
                              return score(rule, view, seen, always_kept);
                            }};
  method.positions = positions == "cache" ? Positions::cache : Positions::absolute_unrotated;
  if (rule.merging.merges()) {
    method.lanes.merged_entries = positions == "merged" ? 0 : rule.merging.gamma - 1;
    method.lanes.merge = {
        "the entries with the next highest scores, into the most similar centres",
        [rule](const LayerView& view, const Scores& scores, const AlwaysKept& always_kept, cache::KeepPlan& plan) {
          merge_prompt(rule.merging, view, scores, always_kept, plan);
        }};
  }
  method.schedule = Schedule::once;
  if (options.text("when") == "prefill") return method;
  decode_by_scores(method, seen, rule);
  return method;
}

}  // namespace

/// EMS (Li et al., 2024, "EMS: Adaptive Evict-then-Merge Strategy for Head-wise KV Cache Compression Based on
/// Global-Local Importance", sections 3.3 and 4): entries are ranked by the larger of the attention from all queries
/// and from the last ones. The best become centres of classes. The next best are merged into the most similar centre:
/// they share its direction and value, each at its own position and with its own key length. Entries that are similar
/// to no centre are evicted. While decoding, each query adds its attention, and the centre with the lowest score is
/// demoted.
Preset ems() {
  return {
      .name = "ems",
      .summary =
          "keeps the entries that all or the last queries attend to most; similar entries are merged and share vectors",
      .paper =
          "Li et al. 2024, EMS: Adaptive Evict-then-Merge Strategy for Head-wise KV Cache Compression Based on "
          "Global-Local Importance",
      .options = options(),
      .build = build_ems};
}

}  // namespace winnow::policy::methods
