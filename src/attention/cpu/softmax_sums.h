// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace winnow::attention::cpu {

/// sums[j] += the softmax of the logits, beside which there are so many zeros. The logits are overwritten.
void add_softmax(std::span<float> logits, int zeros, float* sums);

}  // namespace winnow::attention::cpu
