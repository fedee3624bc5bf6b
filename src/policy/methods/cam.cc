// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "policy/counter_random.h"
#include "policy/methods/presets.h"
#include "policy/rows.h"
#include "policy/step.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

enum class Select : std::uint8_t { heavy, streaming };
/// Attention that gives the probability of a merge while decoding: of all queries so far, or of the newest one.
enum class Drawn : std::uint8_t { by_all, by_newest };

struct CamRule {
  Select select;
  Drawn drawn;
  int spread;  ///< entries over which a value is spread; 0: the number of recent entries
  std::uint64_t seed;

  AlwaysKept always_kept(int budget) const {
    if (select == Select::streaming) return {std::min(4, budget), std::max(0, budget - 4)};
    return {0, budget / 2};
  }
  int spread_over(const AlwaysKept& always_kept) const { return spread > 0 ? spread : std::max(1, always_kept.recent); }
  /// Draws whether an evicted entry is merged, with the probability received / recent_mean.
  bool merges(double received, double recent_mean, int layer, int head, int position) const {
    return recent_mean > 0 && uniform_at(seed, layer, head, position) < received / recent_mean;
  }
};

double recent_mean(std::span<const float> received, const AlwaysKept& always_kept) {
  double sum = 0;
  for (std::size_t j = received.size() - as_size(always_kept.recent); j < received.size(); ++j) sum += received[j];
  return always_kept.recent > 0 ? sum / always_kept.recent : 0;
}

/// Evicted entries of one head whose values are merged, ascending.
std::vector<std::int32_t> to_be_merged(const LayerView& view, int head, const std::vector<std::int32_t>& kept,
                                       std::span<const float> received, const AlwaysKept& always_kept,
                                       const CamRule& rule) {
  const double mean = recent_mean(received, always_kept);
  std::vector<std::int32_t> out;
  auto next = kept.begin();
  for (int j = 0; j < view.tokens(); ++j) {
    if (next != kept.end() && *next == j) {
      ++next;
    } else if (rule.merges(received[j], mean, view.number, head, j)) {
      out.push_back(j);
    }
  }
  return out;
}

/// Values to store for one head: those of its kept entries, plus values of `merged` entries that are spread over
/// `spread` kept entries after them. A value is spread over consecutive entries, so it is added to `change` at the
/// first one and subtracted after the last one; the running sum of `change` is then the sum of an entry's shares.
std::vector<float> merged_values(const cache::Rows& values, const std::vector<std::int32_t>& kept,
                                 const std::vector<std::int32_t>& merged, std::size_t spread) {
  const auto dim = as_size(values.dim);
  std::vector<double> change((kept.size() + 1) * dim);
  std::vector<float> out(kept.size() * dim);
  for (std::size_t i = 0; i < kept.size(); ++i)
    cache::decode_row(values.type, values.row(kept[i]), std::span(out).subspan(i * dim, dim));
  std::vector<float> value(dim);
  for (const auto j : merged) {
    cache::decode_row(values.type, values.row(j), value);
    const auto next = as_size(std::ranges::lower_bound(kept, j) - kept.begin());  // the first kept entry after j
    const std::size_t end = std::min(kept.size(), next + spread);
    for (std::size_t c = 0; c < dim; ++c) {
      change[next * dim + c] += value[c] / static_cast<double>(spread);
      change[end * dim + c] -= value[c] / static_cast<double>(spread);
    }
  }
  std::vector<double> running(dim);
  for (std::size_t first = 0; first < out.size(); first += dim) {
    for (std::size_t c = 0; c < dim; ++c) {
      running[c] += change[first + c];
      out[first + c] += static_cast<float>(running[c]);
    }
  }
  return out;
}

void merge_prompt_values(const LayerView& view, const attention::ColumnStatistics& attention,
                         const AlwaysKept& always_kept, cache::KeepPlan& plan, const CamRule& rule) {
  const Scores received = reduce_group(attention, view.shape, Reduce::mean);
  std::vector<std::vector<std::int32_t>> merged;
  for (int head = 0; head < view.shape.kv_heads; ++head)
    merged.push_back(to_be_merged(view, head, plan.heads[head], received.head(head), always_kept, rule));
  fetch(view, plan, merged);
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    plan.values.push_back(merged_values(view.scratch.fetched_values(head), plan.heads[head], merged[head],
                                        as_size(rule.spread_over(always_kept))));
  }
}

/// Mean attention that the recent entries of a lane have received; `received` by slot.
double recent_mean(const StepView& view, int head, std::span<const float> received) {
  const int count = view.terms.always_kept.recent;
  double sum = 0;
  view.lanes.for_each_span(head, [&](const cache::LaneSpan& stretch) {
    const auto here = received.subspan(stretch.first);
    for (std::size_t i = 0; i < stretch.positions.size(); ++i) {
      if (stretch.positions[i] > view.position - count) sum += here[i];
    }
  });
  return count > 0 ? sum / count : 0;
}

/// Slots of the next entries after a position, at most `count`, in any order.
std::vector<int> next_after(const StepView& view, int head, std::int32_t position, std::size_t count) {
  std::vector<std::pair<std::int32_t, int>> later;
  later.reserve(view.lanes.length(head));
  view.lanes.for_each_span(head, [&](const cache::LaneSpan& stretch) {
    for (int i = 0; i < stretch.count(); ++i) {
      const auto other = stretch.positions[i];
      if (other > position) later.emplace_back(other, stretch.first + i);
    }
  });
  if (count < later.size()) {
    std::nth_element(later.begin(), later.begin() + static_cast<std::ptrdiff_t>(count), later.end());
    later.resize(count);
  }
  std::vector<int> slots;
  slots.reserve(later.size());
  for (const auto& entry : later) slots.push_back(entry.second);
  return slots;
}

/// Attention that each entry of a lane has received from all queries, by slot.
void received_by_all(const StepView& view, int head, std::vector<float>& out) {
  out.clear();
  view.lanes.for_each_span(head, [&](const cache::LaneSpan& stretch) {
    const auto column = stretch.column(0);
    out.insert(out.end(), column.begin(), column.end());
  });
}

/// Spreads the victim's value over the next entries by position; `received` by slot.
void merge_into_next(const StepView& view, int head, const Victim& victim, std::span<const float> received,
                     const CamRule& rule) {
  const double own = received[victim.slot];
  if (!rule.merges(own, recent_mean(view, head, received), view.number, head, victim.position)) return;
  const auto spread = as_size(rule.spread_over(view.terms.always_kept));
  std::vector<float> share(view.shape.head_dim);
  view.lanes.value(head, victim.slot, share);
  for (float& x : share) x /= static_cast<float>(spread);
  view.lanes.add_to_values(head, next_after(view, head, victim.position, spread), share);
}

void after_cam_step(const StepView& view, const CamRule& rule) {
  std::vector<float> received;
  for (int head = view.first_head; head < view.end_head; ++head) {
    group_mean(view, head, received);
    add_to_column(view, head, 0, received);
    if (rule.drawn == Drawn::by_all) received_by_all(view, head, received);
    while (too_long(view, head)) {
      const Victim victim = victim_of(view, head, [&](const cache::LaneSpan& stretch, int i) {
        const auto at = as_size(i);
        return rule.select == Select::heavy ? stretch.column(0)[at] : static_cast<float>(stretch.positions[at]);
      });
      if (victim.slot < 0) break;
      merge_into_next(view, head, victim, received, rule);
      view.lanes.remove(head, victim.slot);
      received[victim.slot] = received.back();  // the last entry moves into the free slot
      received.pop_back();
    }
  }
}

void decode_by_merging(Method& method, ResultPlace<attention::ColumnStatistics> attention, const CamRule& rule) {
  method.lanes.columns = {"attention received"};
  method.lanes.state = {"attention received", [attention](const LayerView& view, const Scores&, const AlwaysKept&) {
                          return std::vector{reduce_group(view[attention], view.shape, Reduce::mean)};
                        }};
  method.schedule = Schedule::step;
  method.decoding.step = {rule.select == Select::heavy
                              ? "the entry with the least attention, whose value is merged into others"
                              : "the oldest entry, whose value is merged into others",
                          [rule](const StepView& view) { after_cam_step(view, rule); }};
}

Method build_cam(const Options& options) {
  const Select select = options.text("select") == "h2o" ? Select::heavy : Select::streaming;
  const Drawn drawn = options.text("drawn") == "received" ? Drawn::by_all : Drawn::by_newest;
  const CamRule rule{select, drawn, options.integer("m"), static_cast<std::uint64_t>(options.integer("seed"))};
  Method method;
  method.selection.fixed = "cam merges by its own selection, which no wrapper can replace";
  const bool merges_prompt = options.text("prompt") == "merge";
  const auto attention = method.observers.add(
      observe_all(),
      {.ranking = select == Select::heavy, .keeping = merges_prompt, .state = options.text("when") == "step"});
  method.selection.always_kept = {
      select == Select::heavy ? "the last half of the budget" : "the first 4 tokens and recent ones",
      [rule](const LayerPrompt&, int budget) { return rule.always_kept(budget); }};
  method.selection.least = {select == Select::heavy ? "nothing, with the smallest budget" : "the first tokens",
                            [select](const LayerPrompt&) { return select == Select::heavy ? 0 : 4; }};
  if (select == Select::heavy) {
    method.selection.score = {"attention received from all queries",
                              [attention](const LayerView& view, const AlwaysKept&) {
                                return reduce_group(view[attention], view.shape, Reduce::mean);
                              }};
  }
  if (merges_prompt) {
    method.lanes.merge = {
        "values of evicted entries into the next ones",
        [rule, attention](const LayerView& view, const Scores&, const AlwaysKept& always_kept, cache::KeepPlan& plan) {
          merge_prompt_values(view, view[attention], always_kept, plan, rule);
        }};
  }
  method.schedule = Schedule::once;
  if (options.text("when") == "prefill") return method;
  decode_by_merging(method, attention, rule);
  return method;
}

}  // namespace

/// CaM (Zhang et al., 2024, "CaM: Cache Merging for Memory-efficient LLMs Inference", section 3): the value of an
/// evicted entry is spread over the next entries, with a probability that grows with the attention it has received. Its
/// key is lost.
///   select  h2o: half of the budget by received attention, half recent; streaming: the first 4 tokens and recent ones
///   m       entries over which a value is spread; 0: the number of recent entries
///   drawn   newest: the newest token's attention decides merges, as in the authors' code for generation;
///           received: all attention received so far decides, so nearly all entries are merged, and values grow from
///           step to step
///   prompt  drop: entries evicted when the prompt ends are lost; merge: they are merged, too, which multiplies values
///           if the prompt is much longer than the budget
///   seed    seed of the random merges
///   when    step: evicts at every decode step; prefill: only when the prompt has been read, so that without
///           prompt=merge nothing is merged
Preset cam() {
  return {
      .name = "cam",
      .summary =
          "merges the values of evicted entries into the next ones, with a probability that depends on their attention",
      .paper = "Zhang et al. 2024, CaM: Cache Merging for Memory-efficient LLMs Inference",
      .options = {{"select", Option::Choice{"h2o", {"h2o", "streaming"}}, "which entries are evicted"},
                  {"m", Option::Integer{0, 0, 65536},
                   "entries over which a value is spread; 0: as many as there are recent ones"},
                  {"drawn", Option::Choice{"newest", {"newest", "received"}},
                   "attention that gives the probability of a merge: that of the newest token, or of all so far"},
                  {"prompt", Option::Choice{"drop", {"drop", "merge"}},
                   "what happens to entries that are evicted at the end of the prompt"},
                  {"seed", Option::Integer{0, 0, 2147483647}, "seed of the draws"},
                  {"when", Option::Choice{"step", {"step", "prefill"}},
                   "when entries are evicted; with prefill only prompt=merge merges anything"}},
      .build = build_cam};
}

}  // namespace winnow::policy::methods
