// SPDX-License-Identifier: Apache-2.0
#include "attention/device/observed_rows.h"

#include <algorithm>

namespace winnow::attention::device {

ObservedRows observed_rows(const ColumnStatistics& columns, int first, int count, int window, const float* row_scales) {
  const auto& request = columns.request();
  const bool is_scaled = request.scale != RowScale::one;
  ObservedRows out{.reach = window};
  if (request.rows.kind == QueryRowSet::Kind::band)
    out.reach = window > 0 ? std::min(window, request.rows.count + 1) : request.rows.count + 1;
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
