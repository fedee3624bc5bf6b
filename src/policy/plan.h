// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/keep_plan.h"
#include "winnow/policy/method.h"

/// Plans of kept entries, from a method and a budget.
namespace winnow::policy {

/// Least budget with which `method` works on a prompt: one entry more than the always kept ones, at most the length of
/// the prompt unless lanes grow while decoding.
int least_budget(const Method& method, const LayerPrompt& prompt);

/// Entries that one layer keeps.
struct LayerBudget {
  int mean = 0;            ///< per KV head; rounded down if `heads` has exact numbers
  std::vector<int> heads;  ///< of each KV head, [H_kv]; empty: not known before the layer is read

  /// Total over `kv_heads` heads.
  int total(int kv_heads) const;
};

/// The budget of each layer, [L]. `layers`: the prompt as each layer sees it, [L]. Throws UsageError with both numbers
/// if the budget is too small for the always kept entries, and std::logic_error if the numbers that a part of the
/// method returns do not add up.
std::vector<LayerBudget> spread_over_layers(const Method& method, int budget, std::span<const LayerPrompt> layers);

/// The entries that one layer keeps. Pure. `layer_budget`: this layer's share from spread_over_layers(). Keeps all if n
/// <= the mean budget. Throws std::logic_error if a part's numbers do not add up.
cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, const LayerBudget& layer_budget);

/// A layer's scores, [H_kv][n], before the second ones join them.
struct ScoreParts {
  Scores scores;
  Scores second;  ///< no heads: the method has none
};
ScoreParts score_parts(const Method& method, const LayerView& view, int budget);
/// Joins the scores of heads that share a budget of `budget` entries per head. Returns the scores by which they rank
/// entries.
Scores joined(const Method& method, ScoreParts parts, int budget);

/// Number of entries of each head of all layers, [heads], if over_heads spreads the budget over all of them. `all`:
/// scores of all layers, layer by layer; `view`: any layer. REQUIRES: n > budget, and all layers have the same always
/// kept entries. Throws std::logic_error if the part's numbers do not add up.
std::vector<int> spread_over_model(const Method& method, const LayerView& view, int budget, const Scores& all);

/// plan() with known scores.
cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, const LayerBudget& layer_budget,
                     const Scores& scores);

/// Peak bytes of plan() in a layer that keeps `entries` entries in all heads: scores and their computation, ranking,
/// columns, merged vectors.
std::size_t plan_bytes(const Method& method, const attention::Shape& shape, int tokens, int entries);

}  // namespace winnow::policy
