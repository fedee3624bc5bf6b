// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::attention::cpu {

/// Logits in units of their soft cap to cap tanh(logit), in place.
void cap_logits(float* logits, int count, float cap);

}  // namespace winnow::attention::cpu
