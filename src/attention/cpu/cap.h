// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::attention::cpu {

/// Replaces logits in units of their soft cap by cap tanh(logit).
void cap_logits(float* logits, int count, float cap);

}  // namespace winnow::attention::cpu
