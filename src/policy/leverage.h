// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// Random projection of keys.
struct Sketch {
  int dimensions = 48;
  std::uint64_t seed = 0;
};

/// Approximate leverage score of each evictable entry's key before RoPE within its head: x (XᵀX + 0.01 I)⁻¹ xᵀ for each
/// row x of X [n][k], the centred keys times a matrix of N(0, 1 / k). 0 for always kept entries.
Scores leverage(const LayerView& view, const AlwaysKept& always_kept, const Sketch& sketch);

/// Bytes of the result, the inverse rotations, and the projected keys of one head.
std::size_t leverage_bytes(const LayerPrompt& prompt, const Sketch& sketch);

}  // namespace winnow::policy
