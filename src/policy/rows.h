// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rope.h"
#include "cache/element.h"
#include "cache/keep_plan.h"
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

/// RoPE's magnitude if it scales only some dimensions of a key, which distorts lengths of keys and angles between them;
/// else 1.
float uneven_magnitude(const Rope& rope, int head_dim);
/// Multiplies the rotated dimensions of a key.
void stretch(const Rope& rope, float by, std::span<float> key);

/// for_each_row() over a head's keys of a prompt, without uneven magnitude.
template <class Each>
void for_each_key(const LayerView& view, int head, const Each& each) {
  const float magnitude = uneven_magnitude(view.rope, view.shape.head_dim);
  std::vector<float> key(view.shape.head_dim);
  for_each_row(view.scratch.keys(head), [&](int j, std::span<const float> row) {
    if (magnitude == 1) return each(j, row);
    std::copy(row.begin(), row.end(), key.begin());
    stretch(view.rope, 1 / magnitude, key);
    each(j, std::span<const float>(key));
  });
}

/// Euclidean length, in double.
double norm(std::span<const float> row);

/// Gets a plan's kept entries and `others`, ascending for each head, from a device that has them. They are then read
/// by fetched_keys() and fetched_values() of the scratch.
void fetch(const LayerView& view, const cache::KeepPlan& plan, std::span<const std::vector<std::int32_t>> others);

/// Adds a vector's products with the summaries of a lane's first blocks, [blocks].
void add_products_with_summaries(const cache::LayerLanes& lanes, int head, std::span<const float> vector,
                                 std::span<float> out);

/// Rule for combining statistics of other rows with scores.
struct Join {
  attention::Reduction reduction;
  double weight = 1;  ///< of the other rows
};
/// Combines statistics of other rows with the scores of a prompt's entries, over the group, in double. A NaN in either
/// gives NaN.
void add_rows(Scores& scores, const attention::ColumnStatistics& more, const attention::Shape& shape, const Join& join);

/// Makes a method rank entries once, after the prompt has been read, and always keep the first `sinks`.
void rank_by(Method& method, std::string text, int sinks,
             std::function<Scores(const LayerView&, const AlwaysKept&)> score);

}  // namespace winnow::policy
