// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace winnow::attention::cpu {

/// Adds the softmax of the logits, with `zeros` additional logits of 0, to sums. Overwrites the logits.
void add_softmax(std::span<float> logits, int zeros, float* sums);

}  // namespace winnow::attention::cpu
