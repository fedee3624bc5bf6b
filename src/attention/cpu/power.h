// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Some rows of one head of a block that has run and retained all its probabilities, whose softmax is taken anew with
/// logits that are multiplied by a power.
struct Powers {
  const Block* block = nullptr;
  int head = 0;
  int first_token = 0;
  int tokens = 0;
  const float* power = nullptr;  ///< [tokens]
};

/// out[key] += the sum over the rows of softmax(power x)[key] for the block's visible keys. From the probabilities p =
/// softmax(x), since softmax(g x) is p^g over its sum, in which a sink counts too; what f32 has rounded to 0 counts as
/// 2^-126.
void add_powers(const Powers& powers, float* out);

}  // namespace winnow::attention::cpu
