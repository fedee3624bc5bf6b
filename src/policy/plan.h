// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/keep_plan.h"
#include "winnow/policy/method.h"

/// From a method and a budget to what each layer keeps.
namespace winnow::policy {

/// Least budget with which `method` works on a prompt: what is always kept and one entry more, but never more than the
/// whole prompt, unless its lanes grow into the budget while decoding.
int least_budget(const Method& method, const LayerPrompt& prompt);

/// Entries that one layer keeps.
struct LayerBudget {
  int mean = 0;            ///< per KV head; rounded down where `heads` says it exactly
  std::vector<int> heads;  ///< of each KV head, [H_kv]; empty: that is known when the layer has been read

  /// Of so many KV heads together.
  int total(int kv_heads) const;
};

/// What each layer keeps, [L]; checks the budget against what is always kept. `layers` [L] are the same prompt to each
/// layer. Throws UsageError with both numbers, and std::logic_error when the method's part gives numbers that do not
/// add up.
std::vector<LayerBudget> spread_over_layers(const Method& method, int budget, std::span<const LayerPrompt> layers);

/// What one layer keeps. Pure: reads the view, changes nothing. `layer_budget` is this layer's share from
/// spread_over_layers(). n <= the mean budget keeps all. Throws std::logic_error when a part's numbers do not add up.
cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, const LayerBudget& layer_budget);

/// What plan() ranks entries by.
Scores scores_of(const Method& method, const LayerView& view, int budget);

/// Entries of each head of all layers, [heads], where over_heads spreads over these: from the scores of all, layer by
/// layer, and the view of one. REQUIRES: n > budget, and that the same is always kept in all layers. Throws
/// std::logic_error when the part's numbers do not add up.
std::vector<int> spread_over_model(const Method& method, const LayerView& view, int budget, const Scores& all);

/// plan() by scores that are known.
cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, const LayerBudget& layer_budget,
                     const Scores& scores);

/// Bytes that plan() has in use at its peak where the layer keeps so many entries, all heads together: scores and
/// what making them takes, what ranks them, columns, merged vectors.
std::size_t plan_bytes(const Method& method, const attention::Shape& shape, int tokens, int entries);

}  // namespace winnow::policy
