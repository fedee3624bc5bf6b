// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "winnow/policy/attention.h"

namespace winnow::attention::device {

/// Observed queries of a chunk, as the kernel takes them.
struct ObservedRows {
  std::vector<std::int32_t> rows = {};  ///< ascending, from the chunk's first query on
  std::vector<float> weights = {};      ///< [rows] positive; empty: 1
  int lag = 0;                          ///< distance of a query to the last key at which it is recorded
  int reach = 0;                        ///< number of keys, up to that one, at which it is recorded
};

/// Queries [first, first + count) that column statistics request, in a layer whose queries see `window` keys (0: all).
/// `row_scales` [count] may be null if no request needs them. Queries of weight 0 are left out.
ObservedRows observed_rows(const ColumnStatistics& columns, int first, int count, int window, const float* row_scales);

}  // namespace winnow::attention::device
