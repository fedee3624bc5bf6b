// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/byte_stream.h"
#include "cache/growing_lanes.h"

/// The lanes of a layer in files: docs/file-formats.md.
namespace winnow::cache {

/// Lengths of the lanes that lie at the cursor, [H_kv], as save() has written them. Throws InputError.
std::vector<int> saved_lengths(ByteCursor& from, int kv_heads);
/// Bytes that save() writes.
std::size_t saved_bytes(const LayerLanes& lanes);
/// Writes the lanes and their summaries.
void save(const LayerLanes& lanes, ByteSink& to);
/// Reads what save() has written, to the end of `from`; the lanes are then what they were, slot by slot. `tokens` have
/// been seen. REQUIRES: the lanes are empty. Throws InputError when the numbers do not add up, MemoryError before
/// anything is allocated.
void load(GrowingLanes& lanes, ByteCursor& from, int tokens);

}  // namespace winnow::cache
