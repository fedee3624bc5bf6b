// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/attention.h"
#include "attention/moments.h"
#include "base/as_size.h"
#include "cache/lanes.h"
#include "cache/scratch.h"
#include "winnow/policy/method.h"

/// Inputs of parts that act on lanes.
namespace winnow::policy {

/// Input of a per-step method after a token's query has read a layer: the lanes, with that token at the last slot of
/// each, and the query's attention. The method may change the lanes.
struct StepView {
  int layer = 0;  ///< as LayerView::layer
  attention::Shape shape;
  cache::LayerLanes& lanes;
  std::int32_t position = 0;  ///< of the token
  const Terms& terms;
  std::span<const int> limit;  ///< [H_kv]: the most entries of a lane
  int first_head = 0;          ///< KV heads of this call: [first_head, end_head)
  int end_head = 0;
  const float* probabilities = nullptr;
  int stride = 0;
  int number;  ///< as LayerView::number
  const Rope& rope;
  const LayerCalibration& calibration;

  /// Attention probabilities of one query head over its KV head's lane, by slot, then over the merged entries.
  std::span<const float> attention(int query_head) const {
    const int entries = lanes.entries(query_head / shape.group());
    return {probabilities + static_cast<std::ptrdiff_t>(query_head) * stride, as_size(entries)};
  }
};

/// Input of a part before a token's query reads a layer, with that token at the last slot of each lane.
struct AttendView {
  int layer = 0;  ///< as LayerView::layer
  attention::Shape shape;
  const cache::LayerLanes& lanes;
  std::int32_t position = 0;  ///< of the token
  const Terms& terms;
  const float* query = nullptr;  ///< [H_q][d], rotated to the token's position
  int first_head = 0;            ///< KV heads of this call: [first_head, end_head)
  int end_head = 0;

  std::span<const float> query_of(int head) const {
    const auto dim = as_size(shape.head_dim);
    return {query + as_size(head) * dim, dim};
  }
};

}  // namespace winnow::policy
