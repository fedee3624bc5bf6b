// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/observe.h"

namespace winnow::attention::cpu {

/// Adds each key's probabilities times `mask` [tokens] over the tokens of each head, for the retained keys of the
/// range. REQUIRES: multiplies_bf16(), and a block that run_tiles_bf16() went through.
void add_sums_bf16(const Block& block, const float* mask, KeyRange keys, const Record& record);

}  // namespace winnow::attention::cpu
