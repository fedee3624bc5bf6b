// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/rope.h"
#include "winnow/kv_type.h"

namespace winnow::cache {

/// Effective positions of entries whose keys are un-rotated.
enum class EffectivePositions : std::uint8_t {
  absolute,  ///< positions in the text
  cache,     ///< ranks in the lane
};

/// Properties shared by all lanes of a layer.
struct LaneShape {
  int kv_heads = 0;
  int head_dim = 0;
  KvType type;
  int state_columns = 0;  ///< f32 values per entry for the method
  /// If set, a lane's keys are un-rotated when its first entry is evicted, and from then on each key is rotated to its
  /// entry's effective position when it is read. Until then, effective positions are absolute, and keys are rotated to
  /// them. Must outlive the lanes.
  const Rope* unrotates = nullptr;
  EffectivePositions positions = EffectivePositions::cache;
  int summary_size = 0;       ///< values of the method's summary of a block of entries in a head
  int summary_block = 16;     ///< minimum number of entries per block
  double merged_entries = 0;  ///< maximum number of merged entries per entry with vectors

  bool has_ranks() const { return unrotates != nullptr && positions == EffectivePositions::cache; }
  /// Type of the summaries: that of the keys, f16 if they are quantized.
  ElementType summary_type() const;
};

/// Bytes of an entry: key, value, position, rank, state, and its share of the merged entries.
std::size_t entry_bytes(const LaneShape& shape);

/// Bytes of a method's summary of one block in one head.
std::size_t summary_bytes(const LaneShape& shape);
/// Number of blocks with summaries in a lane of `entries` entries, including a block that begins with the next entry.
int summary_blocks(const LaneShape& shape, int entries);

}  // namespace winnow::cache
