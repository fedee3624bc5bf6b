// SPDX-License-Identifier: Apache-2.0
#include "attention/device/observed_rows.h"

#include <algorithm>
#include <limits>

namespace winnow::attention::device {

namespace {

/// Distances of a query to the keys at which it is recorded.
struct Distances {
  int first = 0;
  int end = std::numeric_limits<int>::max();
};

Distances distances_of(const ColumnStatistics& columns, int window) {
  Distances out;
  if (window > 0) out.end = window;
  const auto& rows = columns.request().rows;
  if (rows.kind == QueryRowSet::Kind::band) out.end = std::min(out.end, rows.count + 1);
  if (rows.kind == QueryRowSet::Kind::copies) {
    out.first = std::max(0, columns.copy_distance() - 1);
    out.end = std::min(out.end, columns.copy_distance() + 1);
  }
  return out;
}

}  // namespace

ObservedRows observed_rows(const ColumnStatistics& columns, int first, int count, int window, const float* row_scales) {
  const auto& request = columns.request();
  const bool is_scaled = request.scale != RowScale::one;
  const auto distances = distances_of(columns, window);
  if (distances.first >= distances.end) return {};
  ObservedRows out{.lag = distances.first, .reach = distances.end - distances.first};
  for (int i = 0; i < count; ++i) {
    if (!request.rows.contains(first + i, columns.size())) continue;
    const float weight = request.weight_of(first + i, columns.size()) * (is_scaled ? row_scales[i] : 1.0F);
    if (weight <= 0) continue;
    out.rows.push_back(i);
    if (is_scaled || !request.weight.empty()) out.weights.push_back(weight);
  }
  return out;
}

}  // namespace winnow::attention::device
