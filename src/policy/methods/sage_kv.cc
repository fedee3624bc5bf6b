// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "policy/methods/presets.h"
#include "policy/top.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

int sinks_of(int budget) { return budget / 4; }

/// Number of entries that each query head picks.
struct Picks {
  int given = 0;  ///< 0: by the budget
  bool power_of_two = true;

  int of(const LayerPrompt& prompt, int budget) const {
    if (given > 0) return given;
    const int plain = budget / (2 * prompt.group);
    return power_of_two ? static_cast<int>(std::bit_floor(static_cast<unsigned>(plain))) : plain;
  }
  /// Number of recent entries, the last token included; negative if the budget is too small.
  int recent(const LayerPrompt& prompt, int budget) const {
    return budget - sinks_of(budget) - prompt.group * of(prompt, budget);
  }
};

/// One less than the least budget with which every query head picks an entry and the last token has its place.
int least(const Picks& picks, const LayerPrompt& prompt) {
  int budget = 1;
  while (picks.of(prompt, budget) < 1 || picks.recent(prompt, budget) < 1) ++budget;
  return budget - 1;
}

using Rows = std::vector<std::span<const float>>;

/// The union of each query head's best entries. Places left by entries that several heads pick are filled with the next
/// best by the group's maximum. `rows`: attention of the group's query heads.
std::vector<std::int32_t> joined(const Rows& rows, int count, const AlwaysKept& always_kept) {
  std::vector<float> ranked(rows.front().begin(), rows.front().end());
  for (const auto row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) ranked[j] = std::max(ranked[j], row[j]);
  }
  for (const auto row : rows) {
    for (const auto j : top(row, count / static_cast<int>(rows.size()), always_kept))
      ranked[j] = std::numeric_limits<float>::infinity();
  }
  return top(ranked, count, always_kept);
}

Rows observed_rows(const LayerView& view, const attention::ColumnStatistics& attention, int head) {
  Rows rows;
  for (int g = 0; g < view.shape.group(); ++g) rows.push_back(attention.head(head * view.shape.group() + g));
  return rows;
}

std::vector<std::vector<std::int32_t>> select(const LayerView& view, const attention::ColumnStatistics& attention,
                                              const Scores& scores, std::span<const int> counts,
                                              const AlwaysKept& always_kept) {
  std::vector<std::vector<std::int32_t>> out;
  for (int head = 0; head < scores.heads(); ++head) {
    out.push_back(joined(observed_rows(view, attention, head), counts[head], always_kept));
  }
  return out;
}

/// 1 for selected entries, which stay while the recent window slides.
std::vector<Scores> mark_selected(const LayerView& view, const Scores&, const AlwaysKept& always_kept) {
  Scores marks(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < marks.heads(); ++head) {
    const auto of_head = marks.head(head);
    std::fill(of_head.begin() + always_kept.sinks, of_head.end() - always_kept.recent, 1.0F);
  }
  return {std::move(marks)};
}

int oldest_recent(cache::LayerLanes& lanes, int head, const Terms& terms) {
  int oldest = lanes.length(head) - 1;
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  lanes.for_each_span(head, [&](const cache::LaneSpan& stretch) {
    const auto selected = stretch.column(0);
    for (std::size_t i = 0; i < selected.size(); ++i) {
      const auto position = stretch.positions[i];
      if (position < terms.always_kept.sinks || selected[i] != 0 || position >= least) continue;
      least = position;
      oldest = stretch.first + static_cast<int>(i);
    }
  });
  return oldest;
}

/// The `refresh` option: everything is kept, and queries read a selection. Every `every` tokens one query reads
/// everything and renews the selection. A prompt that fits into the budget has no selection; the first query that finds
/// the lane longer than the budget makes it.
struct Refresh {
  Picks picks;
  int every;

  /// True if the query of the token at `position`, in a lane of this length, renews the selection.
  bool selects(const Terms& terms, std::int32_t position, int length) const {
    const bool is_due = (position - terms.prompt.tokens + 1) % every == 0;
    return length == terms.budget + 1 || (length > terms.budget && is_due);
  }

  void mark(cache::LayerLanes& lanes, int head, const Rows& rows, const Terms& terms) const {
    lanes.for_each_span(head, [](const cache::LaneSpan& stretch) { std::ranges::fill(stretch.column(0), 0.0F); });
    const int count = terms.prompt.group * picks.of(terms.prompt, terms.budget);
    for (const auto j : joined(rows, count, terms.always_kept)) lanes.state(head, 0, j) = 1;
  }

  void prepare(const LayerView& view, const attention::ColumnStatistics& attention, cache::LayerLanes& lanes,
               const Terms& terms) const {
    if (view.tokens() <= terms.budget) return;
    for (int head = 0; head < view.shape.kv_heads; ++head)
      mark(lanes, head, observed_rows(view, attention, head), terms);
  }

  void after_step(const StepView& view) const {
    if (!selects(view.terms, view.position, view.lanes.length(view.first_head))) return;
    for (int head = view.first_head; head < view.end_head; ++head) {
      Rows rows;
      for (int g = 0; g < view.shape.group(); ++g) rows.push_back(view.attention(head * view.shape.group() + g));
      mark(view.lanes, head, rows, view.terms);
    }
  }

  /// Sinks, runs of selected entries, and the recent ones.
  void attend(const AttendView& view, std::span<cache::AttendPlan> plans) const {
    const int length = view.lanes.length(view.first_head);
    if (length <= view.terms.budget || selects(view.terms, view.position, length)) return;
    const auto& always_kept = view.terms.always_kept;
    for (int head = view.first_head; head < view.end_head; ++head) {
      auto& plan = plans[head];
      plan.push_back({0, always_kept.sinks, 0});
      for (int slot = always_kept.sinks; slot < length - always_kept.recent; ++slot) {
        if (view.lanes.state(head, 0, slot) != 0) cache::extend(plan, slot, slot + 1);
      }
      plan.push_back({length - always_kept.recent, length, 0});
    }
  }
};

/// Changes the one-shot method to one that keeps everything.
void add_refresh(Method& method, ResultPlace<attention::ColumnStatistics> attention, const Refresh& refresh) {
  method.selection.fixed = "it evicts nothing with refresh";
  method.schedule = Schedule::keep;
  method.retrieves = true;
  method.decoding.evict = {};
  method.lanes.state = {};
  method.decoding.prepare = {"the selection",
                             [refresh, attention](const LayerView& view, cache::LayerLanes& lanes, const Terms& terms) {
                               refresh.prepare(view, view[attention], lanes, terms);
                             }};
  method.decoding.step = {"nothing; the selection is repeated at intervals",
                          [refresh](const StepView& view) { refresh.after_step(view); }};
  method.decoding.attend = {
      "to the selection, first and recent tokens",
      [refresh](const AttendView& view, std::span<cache::AttendPlan> plans) { refresh.attend(view, plans); }};
}

}  // namespace

/// SAGE-KV (Wang et al., 2025, "LLMs Know What to Drop: Self-Attention Guided KV Cache Eviction for Efficient
/// Long-Context Inference", section 2): the attention of the prompt's last token selects the kept entries once, k for
/// each query head. First tokens take a quarter of the budget, and the most recent tokens take the rest and slide while
/// decoding.
///   k      entries that each query head picks; 0: a share of the budget, B / (2 G)
///   round  power: k is rounded down to a power of two, as in the paper; floor: it is not
///   refresh  0: entries that are not selected are evicted; n: they stay, and the selection is renewed every n
///            generated tokens; for a prompt that fits it is first made when the lane outgrows the budget
Preset sage_kv() {
  return {.name = "sage-kv",
          .summary =
              "keeps the entries that the prompt's last token attends to most in each query head, and first and recent "
              "tokens",
          .paper =
              "Wang et al. 2025, LLMs Know What to Drop: Self-Attention Guided KV Cache Eviction for Efficient "
              "Long-Context Inference",
          .options = {{"k", Option::Integer{0, 0, 1048576}, "entries that each query head picks; 0: B / (2 G)"},
                      {"round", Option::Choice{"power", {"power", "floor"}},
                       "rounding of B / (2 G) with k=0: down to a power of two, or just down"},
                      {"refresh", Option::Integer{0, 0, 1048576},
                       "tokens after which heads pick again from all entries; 0: never, and entries are evicted"}},
          .build = [](const Options& options) {
            const Picks picks{options.integer("k"), options.text("round") == "power"};
            Method method;
            const bool evicts = options.integer("refresh") == 0;
            const auto attention =
                method.observers.add(observe_last(1), {.ranking = evicts, .keeping = evicts, .state = !evicts});
            method.selection.always_kept = {
                "first tokens (a quarter of the budget), and recent tokens in the places that the picks leave",
                [picks](const LayerPrompt& prompt, int budget) {
                  return AlwaysKept{sinks_of(budget), std::max(0, picks.recent(prompt, budget))};
                }};
            method.selection.least = {"a pick for each query head, and the last token",
                                      [picks](const LayerPrompt& prompt) { return least(picks, prompt); }};
            method.selection.score = {"attention of the last token, maximum over the group",
                                      [attention](const LayerView& view, const AlwaysKept&) {
                                        return reduce_group(view[attention], view.shape, Reduce::max);
                                      }};
            method.selection.select = {"the union of each query head's best",
                                       [attention](const LayerView& view, const Scores& scores,
                                                   std::span<const int> counts, const AlwaysKept& always_kept) {
                                         return select(view, view[attention], scores, counts, always_kept);
                                       }};
            method.lanes.columns = {"selected"};
            method.lanes.state = {"what was selected", mark_selected};
            method.schedule = Schedule::step;
            method.decoding.evict = {"the oldest recent entry", oldest_recent};
            if (!evicts) add_refresh(method, attention, {picks, options.integer("refresh")});
            return method;
          }};
}

}  // namespace winnow::policy::methods
