// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/byte_stream.h"
#include "cache/growing_lanes.h"

/// Lanes of a layer in files; format in docs/file-formats.md.
namespace winnow::cache {

/// Lengths of the lanes at the cursor, [H_kv], as written by save(). Throws InputError.
std::vector<int> saved_lengths(ByteCursor& from, int kv_heads);
/// Bytes written by save().
std::size_t saved_bytes(const LayerLanes& lanes);
/// Writes the lanes and their summaries.
void save(const LayerLanes& lanes, ByteSink& to);
/// Reads lanes written by save(), up to the end of `from`, with the same slots. `tokens`: number of tokens seen.
/// REQUIRES: the lanes are empty. Throws InputError if the numbers are inconsistent, MemoryError before anything is
/// allocated.
void load(GrowingLanes& lanes, ByteCursor& from, int tokens);

}  // namespace winnow::cache
