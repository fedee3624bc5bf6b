// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// How many random directions keys are reduced to, and which.
struct Sketch {
  int dimensions = 48;
  std::uint64_t seed = 0;
};

/// How far each evictable entry's key before RoPE lies from the others of its head, approximately: with X [n][k] the
/// centred keys times a matrix of N(0, 1 / k), x (XᵀX + 0.01 I)⁻¹ xᵀ for each row x. Of always kept entries 0.
Scores leverage(const LayerView& view, const AlwaysKept& always_kept, const Sketch& sketch);

/// Its result, what turns keys back, and the reduced keys of one head.
std::size_t leverage_bytes(const LayerPrompt& prompt, const Sketch& sketch);

}  // namespace winnow::policy
