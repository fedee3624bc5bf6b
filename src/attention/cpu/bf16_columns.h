// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/record.h"

namespace winnow::attention::cpu {

/// Adds to each retained key of the range its probabilities times `mask` [tokens], summed over the tokens of each head.
/// REQUIRES: multiplies_bf16(), and run_tiles_bf16() of the block.
void add_sums_bf16(const Block& block, const float* mask, KeyRange keys, const Record& record);

}  // namespace winnow::attention::cpu
