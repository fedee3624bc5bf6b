// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Rows of one head in a block that has run and retained all its probabilities. Their softmax is recomputed with logits
/// multiplied by a power.
struct Powers {
  const Block* block = nullptr;
  int head = 0;
  int first_token = 0;
  int tokens = 0;
  const float* power = nullptr;  ///< [tokens]
};

/// Adds the sum over the rows of softmax(power x)[key] to out[key] for the block's visible keys. It is computed from
/// the probabilities p = softmax(x): softmax(g x) is p^g divided by its sum, which includes the sink. Probabilities
/// that f32 rounded to 0 count as 2^-126.
void add_powers(const Powers& powers, float* out);

}  // namespace winnow::attention::cpu
