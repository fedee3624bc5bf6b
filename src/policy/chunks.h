// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/method.h"

namespace winnow::policy {

/// Chunks of `length` consecutive entries that are kept whole (after Liu et al., 2025, "ChunkKV: Semantic-Preserving KV
/// Cache Compression for Efficient Long-Context LLM Inference", section 3). Chunks begin at the first evictable entry,
/// and the last one may be shorter. The score of a chunk is the mean over its entries. If only a part of a chunk is
/// kept, it is the entries nearest to its best one.
DividePart chunks_of(int length);

}  // namespace winnow::policy
