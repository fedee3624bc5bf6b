// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/method.h"

namespace winnow::policy {

/// Gives a method the parts that its `chunks` ask for (after Liu et al., 2025, "ChunkKV: Semantic-Preserving KV Cache
/// Compression for Efficient Long-Context LLM Inference", section 3). Chunks are counted from the first entry that may
/// be evicted, and the last one may be shorter; a chunk's score is the mean of the method's scores over its entries,
/// summed over the layer's heads where these choose together. The best chunks are kept, and of the last one as many
/// entries as are left to keep, nearest to its best. Where heads share a layer's budget by need, need is measured on
/// chunks: every entry counts as much as its chunk. REQUIRES: `chunks` is set; `over_heads`, where it is set, is not
/// measured on chunks yet, and no layer chooses.
void keep_chunks(SelectionParts& selection);

}  // namespace winnow::policy
