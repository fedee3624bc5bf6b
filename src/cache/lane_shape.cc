// SPDX-License-Identifier: Apache-2.0
#include "cache/lane_shape.h"

#include <cmath>

#include "base/as_size.h"
#include "cache/element.h"
#include "cache/merged_entries.h"

namespace winnow::cache {

ElementType LaneShape::summary_type() const {
  const bool quantized = type.key == ElementType::q8_0 || type.key == ElementType::q4_0;
  return quantized ? ElementType::f16 : type.key;
}

std::size_t summary_bytes(const LaneShape& shape) { return row_bytes(shape.summary_type(), shape.summary_size); }

int summary_blocks(const LaneShape& shape, int entries) {
  return shape.summary_size > 0 ? entries / shape.summary_block + 1 : 0;
}

std::size_t entry_bytes(const LaneShape& shape) {
  return row_bytes(shape.type.key, shape.head_dim) + row_bytes(shape.type.value, shape.head_dim) +
         (shape.has_ranks() ? 2 : 1) * sizeof(std::int32_t) + as_size(shape.state_columns) * sizeof(float) +
         static_cast<std::size_t>(
             std::ceil(shape.merged_entries * static_cast<double>(MergedEntries::bytes(shape.state_columns))));
}

}  // namespace winnow::cache
