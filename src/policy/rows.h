// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "cache/element.h"
#include "policy/views.h"

namespace winnow::policy {

/// Calls each(j, row) for all rows, decoded to f32 one after the other.
template <class Each>
void for_each_row(const cache::Rows& rows, const Each& each) {
  std::vector<float> row(rows.dim);
  for (int j = 0; j < rows.count; ++j) {
    cache::decode_row(rows.type, rows.row(j), row);
    each(j, std::span<const float>(row));
  }
}

/// Euclidean length, in double.
double norm(std::span<const float> row);

/// Adds a vector's products with the summaries of a lane's first blocks, [blocks].
void add_products_with_summaries(const cache::LayerLanes& lanes, int head, std::span<const float> vector,
                                 std::span<float> out);

/// A method that ranks entries by their own rows once, when the prompt has been read, and always keeps the first
/// `sinks`.
Method ranked_by(std::string text, int sinks, std::function<Scores(const LayerView&, const AlwaysKept&)> score);

}  // namespace winnow::policy
