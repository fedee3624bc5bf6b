// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/moments.h"
#include "base/as_size.h"
#include "cache/keep_plan.h"
#include "cache/lanes.h"
#include "cache/scratch.h"
#include "winnow/policy/method.h"

/// What parts that act on lanes and plans look at, and what is done with a method.
namespace winnow::policy {

/// What a per-step method may look at when a token's query has read a layer: the lanes with that token at the last slot
/// of each, and the attention it gave. The lanes are the method's to change.
struct StepView {
  int layer = 0;
  attention::Shape shape;
  cache::LayerLanes& lanes;
  std::int32_t position = 0;  ///< of the token
  const Terms& terms;
  std::span<const int> limit;  ///< [H_kv] entries that a lane may have
  int first_head = 0;          ///< KV heads that this call is about: [first_head, end_head)
  int end_head = 0;
  const float* probabilities = nullptr;
  int stride = 0;

  /// Attention probabilities of one query head over its KV head's lane, by slot, then over the merged entries.
  std::span<const float> attention(int query_head) const {
    const int entries = lanes.entries(query_head / shape.group());
    return {probabilities + static_cast<std::ptrdiff_t>(query_head) * stride, as_size(entries)};
  }
};

/// What a part may look at before a token's query reads a layer, with that token at the last slot of each lane.
struct AttendView {
  int layer = 0;
  attention::Shape shape;
  const cache::LayerLanes& lanes;
  std::int32_t position = 0;  ///< of the token
  const Terms& terms;
  const float* query = nullptr;  ///< [H_q][d], rotated to the token's position
  int first_head = 0;            ///< KV heads that this call is about: [first_head, end_head)
  int end_head = 0;

  std::span<const float> query_of(int head) const {
    const auto dim = as_size(shape.head_dim);
    return {query + as_size(head) * dim, dim};
  }
};

/// Least budget with which `method` works on a prompt: what it forces and one entry more, but never more than the whole
/// prompt, unless its lanes grow into the budget while decoding.
int least_budget(const Method& method, const LayerPrompt& prompt);

/// What one layer keeps. Pure: reads the view, changes nothing. `layer_budget` is this layer's share from
/// spread_over_layers(), in entries per KV head. n <= the mean budget keeps all. Throws std::logic_error when a part's
/// numbers do not add up.
cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, int layer_budget);

/// Bytes that plan() has in use at its peak where the budget is so many entries per KV head of the layer: scores, what
/// ranks them, columns, merged vectors.
std::size_t plan_bytes(const Method& method, const attention::Shape& shape, int tokens, int budget);

/// Entries per KV head of each layer, [L]; checks the budget against what the method forces. `layers` [L] are the same
/// prompt to each layer. Throws UsageError with both numbers, and std::logic_error when the method's part gives numbers
/// that do not add up.
std::vector<int> spread_over_layers(const Method& method, int budget, std::span<const LayerPrompt> layers);

}  // namespace winnow::policy
