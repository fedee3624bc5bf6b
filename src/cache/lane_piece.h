// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cache/element.h"

namespace winnow::cache {

/// Some entries of one lane, as attention reads them: rows that lie together, or the merged entries of such rows.
struct LanePiece {
  Rows keys;
  Rows values;
  std::int64_t query_shift = 0;
  /// Effective position that each entry's key is rotated to when it is read. Null: keys are rotated already.
  const std::int32_t* rotate_to = nullptr;
  std::int32_t rotate_to_end = 0;  ///< all of these positions are below
  int first = 0;                   ///< number of the first entry in its lane: slots, then merged entries
  /// Set: the entries are not the rows but these merged entries of them.
  const std::int32_t* centres = nullptr;  ///< slots, ascending
  const float* scales = nullptr;
  std::int32_t first_slot = 0;  ///< of row 0
  int merged_entries = 0;

  int entries() const { return centres == nullptr ? keys.count : merged_entries; }
};

}  // namespace winnow::cache
