// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/rope.h"
#include "winnow/kv_type.h"

namespace winnow::cache {

/// Effective positions of entries whose keys are un-rotated.
enum class EffectivePositions : std::uint8_t {
  absolute,  ///< their positions in the text
  cache,     ///< their ranks in the lane
};

/// What every lane of a layer has in common.
struct LaneShape {
  int kv_heads = 0;
  int head_dim = 0;
  KvType type;
  int state_columns = 0;  ///< f32 values a method stores beside each entry
  /// Set: as soon as an entry is evicted from a lane, the lane's keys are un-rotated. Each is then rotated to its
  /// entry's effective position when it is read. Until then effective positions are absolute, and keys are rotated to
  /// them. Outlives the lanes.
  const Rope* unrotates = nullptr;
  EffectivePositions positions = EffectivePositions::cache;
  int summary_size = 0;       ///< values a method stores for each block of entries of a head
  int summary_block = 16;     ///< entries that a block has at least
  double merged_entries = 0;  ///< entries without vectors of their own, at most, for each that has them

  bool has_ranks() const { return unrotates != nullptr && positions == EffectivePositions::cache; }
  /// Type of what is stored for blocks: the keys' own, f16 where theirs is quantized.
  ElementType summary_type() const;
};

/// Bytes that one entry takes: key row, value row, position, rank, state, and its share of the merged entries.
std::size_t entry_bytes(const LaneShape& shape);

/// Bytes that a method's summary of one block of one head takes.
std::size_t summary_bytes(const LaneShape& shape);
/// Blocks of a lane with so many entries that have summaries, or get one with the next entry.
int summary_blocks(const LaneShape& shape, int entries);

}  // namespace winnow::cache
