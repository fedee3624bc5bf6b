// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cache/element.h"

namespace winnow::cache {

class LaneStorage;

/// A run of a lane's entries for attention: contiguous rows, or the merged entries of such rows.
struct LaneRun {
  Rows keys;
  Rows values;
  std::int64_t query_shift = 0;
  /// Effective positions to which keys are rotated when they are read. Null: keys are already rotated.
  const std::int32_t* rotate_to = nullptr;
  std::int32_t rotate_to_end = 0;  ///< upper bound of these positions, exclusive
  int first = 0;                   ///< index of the first entry in the lane: slots first, then merged entries
  /// If set, the entries are these merged entries of the rows, not the rows.
  const std::int32_t* centres = nullptr;  ///< slots, ascending
  const float* scales = nullptr;
  std::int32_t first_slot = 0;  ///< slot of row 0
  int merged_entries = 0;
  const LaneStorage* storage = nullptr;  ///< that of the rows; null: of no lane

  int entries() const { return centres == nullptr ? keys.count : merged_entries; }
};

}  // namespace winnow::cache
