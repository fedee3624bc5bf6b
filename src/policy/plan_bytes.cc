// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/as_size.h"
#include "policy/plan.h"
#include "policy/top.h"

namespace winnow::policy {

namespace {

/// Bytes of the head that keeps the most entries.
std::size_t merge_bytes(const Method& method, const attention::Shape& shape, int tokens, int entries) {
  if (!method.lanes.merge_bytes) return 0;
  const bool alike = !method.selection.over_heads;
  const int longest = std::min(tokens, alike ? (entries + shape.kv_heads - 1) / shape.kv_heads : entries);
  return method.lanes.merge_bytes({tokens, shape.group(), shape.head_dim, shape.kv_heads}, longest);
}

}  // namespace

std::size_t plan_bytes(const Method& method, const attention::Shape& shape, int tokens, int entries) {
  const bool fits = !method.evicts() || shape.kv_heads * tokens <= entries;
  if (fits && !method.lanes.state) return 0;
  const std::size_t all = as_size(shape.kv_heads) * as_size(tokens);
  const std::size_t scores = all * sizeof(float);
  const std::size_t columns = method.lanes.state ? scores * method.lanes.columns.size() : 0;
  const LayerPrompt prompt{tokens, shape.group(), shape.head_dim, shape.kv_heads};
  const std::size_t scoring = method.selection.score_bytes ? method.selection.score_bytes(prompt) : 0;
  const std::size_t second = method.selection.second_score ? scores : 0;
  if (fits) return scores + std::max(columns, scoring);
  const std::size_t ranking = method.selection.over_heads ? top_of_layer_bytes(all) : 0;
  const std::size_t sides =
      method.positions == Positions::absolute ? 1 : 2;  // keys are merged only if they are un-rotated
  const std::size_t vectors =
      method.lanes.merge ? sides * as_size(entries) * as_size(shape.head_dim) * sizeof(float) : 0;
  const std::size_t merged = vectors + merge_bytes(method, shape, tokens, entries);
  const std::size_t selecting = method.selection.select_bytes ? method.selection.select_bytes(prompt) : 0;
  return scores + std::max({columns + merged, ranking, selecting, scoring, second});
}

}  // namespace winnow::policy
