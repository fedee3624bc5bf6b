// SPDX-License-Identifier: Apache-2.0
#include "policy/plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "policy/apportion.h"
#include "policy/pieces.h"
#include "policy/top.h"
#include "winnow/budget_error.h"

namespace winnow::policy {

namespace {

/// Checks that a part that spreads a budget returned `count` numbers with a mean of exactly `mean`.
void check_spread(const std::string& method, std::span<const int> numbers, int count, int mean) {
  const auto sum = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
  const bool fits = static_cast<int>(numbers.size()) == count && sum == static_cast<std::int64_t>(count) * mean &&
                    std::all_of(numbers.begin(), numbers.end(), [](int x) { return x >= 0; });
  if (!fits) {
    throw std::logic_error(fmt::format("{}: a budget of {} for {} was divided into {} parts that sum to {}", method,
                                       mean, count, numbers.size(), sum));
  }
}

void check_budget(const Method& method, int budget, const LayerPrompt& prompt) {
  const int least = least_budget(method, prompt);
  if (budget < least) {
    throw BudgetError(
        fmt::format("{} cannot work with a budget of {} entries per KV head: it needs at least {} for {} tokens",
                    method.name, budget, least, prompt.tokens));
  }
}

AlwaysKept most_always_kept(const Method& method, int budget, std::span<const LayerPrompt> layers) {
  AlwaysKept most;
  for (const auto& prompt : layers) {
    const AlwaysKept always_kept = method.selection.always_kept.call(prompt, budget);
    if (always_kept.total() > most.total()) most = always_kept;
  }
  return most;
}

std::vector<LayerBudget> uniform(int budget, std::size_t layers) { return {layers, LayerBudget{budget, {}}}; }

/// Number of selected entries of each head, [H_kv].
std::vector<int> spread_over_heads(const Method& method, const LayerView& view, const Scores& scores,
                                   const LayerBudget& budget, const AlwaysKept& always_kept) {
  if (!budget.heads.empty()) {
    auto counts = budget.heads;
    for (int& count : counts) count -= always_kept.total();
    return counts;
  }
  const int mean = budget.mean - always_kept.total();
  if (!method.selection.over_heads) return std::vector<int>(scores.heads(), mean);
  auto counts = method.selection.over_heads.call(view, mean, scores, always_kept);
  check_spread(method.name, counts, scores.heads(), mean);
  return counts;
}

std::vector<std::vector<std::int32_t>> select(const Method& method, const LayerView& view, const Scores& scores,
                                              std::span<const int> counts, const AlwaysKept& always_kept) {
  if (method.selection.select) return method.selection.select.call(view, scores, counts, always_kept);
  std::vector<std::vector<std::int32_t>> out;
  for (int head = 0; head < scores.heads(); ++head) out.push_back(top(scores.head(head), counts[head], always_kept));
  return out;
}

/// Number of places of each head that are filled by rank.
std::vector<int> ranked_places(const Method& method, std::span<const int> counts) {
  if (!method.selection.draw) return {counts.begin(), counts.end()};
  std::vector<int> ranked;
  for (const int count : counts) {
    const double drawn = method.selection.drawn_share * count;
    ranked.push_back(apportion(std::vector<double>{count - drawn, drawn}, count)[0]);
  }
  return ranked;
}

bool fits(const Method& method, const LayerView& view, int budget) {
  return !method.evicts() || view.tokens() <= budget;
}

/// Keeps all of a prompt that fits into the budget.
AlwaysKept always_kept_of(const Method& method, const LayerView& view, int budget) {
  return fits(method, view, budget) ? AlwaysKept{view.tokens(), 0}
                                    : method.selection.always_kept.call(view.prompt(), budget);
}

/// Selects [column][head][kept entry, then merged entry] from the columns of all entries.
std::vector<std::vector<std::vector<float>>> kept_state(const std::vector<Scores>& columns,
                                                        const cache::KeepPlan& plan) {
  std::vector<std::vector<std::vector<float>>> out;
  for (const Scores& column : columns) {
    auto& heads = out.emplace_back();
    for (int head = 0; head < column.heads(); ++head) {
      const auto all = column.head(head);
      auto& values =
          heads.emplace_back(plan.keeps_all() ? std::vector<float>(all.begin(), all.end()) : std::vector<float>());
      if (plan.keeps_all()) continue;
      for (const auto j : plan.heads[head]) values.push_back(all[j]);
      if (plan.merged_entries.empty()) continue;
      for (const auto& joined : plan.merged_entries[head]) values.push_back(all[joined.row]);
    }
  }
  return out;
}

}  // namespace

int least_budget(const Method& method, const LayerPrompt& prompt) {
  if (!method.needs_budget()) return 0;
  const int least = method.selection.least.call(prompt) + 1;
  return method.schedule == Schedule::once ? std::min(least, prompt.tokens) : least;  // lanes of other methods grow
}

int LayerBudget::total(int kv_heads) const {
  return heads.empty() ? kv_heads * mean : std::accumulate(heads.begin(), heads.end(), 0);
}

std::vector<LayerBudget> spread_over_layers(const Method& method, int budget, std::span<const LayerPrompt> layers) {
  const int tokens = layers.front().tokens;
  const int count = static_cast<int>(layers.size());
  const bool fits = tokens <= budget;
  // A budget that holds the whole prompt is never too small, unless the lanes will grow until it is full.
  if (method.needs_budget() && (!fits || method.schedule != Schedule::once)) {
    for (const auto& prompt : layers) check_budget(method, budget, prompt);
  }
  if (fits || !method.selection.over_layers) return uniform(budget, layers.size());
  const auto budgets =
      method.selection.over_layers.call(budget, count, tokens, most_always_kept(method, budget, layers));
  check_spread(method.name, budgets, count, budget);
  std::vector<LayerBudget> out;
  for (const int mean : budgets) out.push_back({mean, {}});
  return out;
}

ScoreParts score_parts(const Method& method, const LayerView& view, int budget) {
  const AlwaysKept always_kept = always_kept_of(method, view, budget);
  const auto scores_by = [&](const ScorePart& part, int heads) {
    return part ? part.call(view, always_kept) : Scores(heads, view.tokens());
  };
  return {scores_by(method.selection.score, view.shape.kv_heads), scores_by(method.selection.second_score, 0)};
}

Scores joined(const Method& method, ScoreParts parts, int budget) {
  if (method.selection.join) method.selection.join.call(parts.scores, parts.second, budget);
  return std::move(parts.scores);
}

std::vector<int> spread_over_model(const Method& method, const LayerView& view, int budget, const Scores& all) {
  const AlwaysKept always_kept = always_kept_of(method, view, budget);
  const int mean = budget - always_kept.total();
  auto out = method.selection.over_heads.call(view, mean, all, always_kept);
  check_spread(method.name, out, all.heads(), mean);
  for (int& entries : out) entries += always_kept.total();
  return out;
}

cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, const LayerBudget& layer_budget) {
  if (!fits(method, view, budget)) {
    const Scores scores = joined(method, score_parts(method, view, budget), budget);
    return plan(method, view, budget, layer_budget, scores);
  }
  if (!method.lanes.state) return {};
  return plan(method, view, budget, layer_budget, Scores(view.shape.kv_heads, view.tokens()));
}

cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, const LayerBudget& layer_budget,
                     const Scores& scores) {
  cache::KeepPlan out;
  const AlwaysKept always_kept = always_kept_of(method, view, budget);
  if (!fits(method, view, budget)) {
    const auto counts = spread_over_heads(method, view, scores, layer_budget, always_kept);
    auto selected = select(method, view, scores, ranked_places(method, counts), always_kept);
    if (method.selection.draw) method.selection.draw.call(view, scores, selected, counts, always_kept);
    for (const auto& of_head : selected) out.heads.push_back(with_always_kept(of_head, view.tokens(), always_kept));
    if (method.lanes.merge) method.lanes.merge.call(view, scores, always_kept, out);
  }
  if (!method.lanes.state) return out;
  const auto& pieces = method.selection.pieces;
  std::optional<Scores> worth;  // scores of pieces
  if (pieces && method.lanes.state_by_scores && !fits(method, view, budget))
    worth = of_pieces(pieces->divide, view, scores, always_kept);
  out.state = kept_state(method.lanes.state.call(view, worth ? *worth : scores, always_kept), out);
  return out;
}

}  // namespace winnow::policy
