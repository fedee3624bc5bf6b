// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/as_size.h"
#include "policy/method.h"
#include "policy/select.h"

namespace winnow::policy {

std::size_t plan_bytes(const Method& method, const attention::Shape& shape, int tokens, int budget) {
  const bool fits = !method.evicts() || tokens <= budget;
  if (fits && !method.lanes.state) return 0;
  const auto heads = as_size(shape.kv_heads);
  const std::size_t entries = heads * as_size(tokens);
  const std::size_t scores = entries * sizeof(float);
  const std::size_t columns = method.lanes.state ? scores * method.lanes.columns.size() : 0;
  if (fits) return scores + columns;
  const std::size_t ranking = method.selection.over_heads ? top_of_layer_bytes(entries) : 0;
  const std::size_t sides =
      method.positions == Positions::absolute ? 1 : 2;  // keys can be merged where they are un-rotated
  const std::size_t merged =
      method.lanes.merge ? sides * heads * as_size(budget) * as_size(shape.head_dim) * sizeof(float) : 0;
  return scores + std::max({columns + merged, ranking});
}

}  // namespace winnow::policy
