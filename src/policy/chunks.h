// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/method.h"

namespace winnow::policy {

/// Whole chunks of `length` consecutive entries (after Liu et al., 2025, "ChunkKV: Semantic-Preserving KV Cache
/// Compression for Efficient Long-Context LLM Inference", section 3). They are counted from the first entry that may be
/// evicted, and the last one may be shorter. A chunk's score is the mean over its entries. Where not all of them are
/// kept, those nearest to its best are.
DividePart chunks_of(int length);

}  // namespace winnow::policy
