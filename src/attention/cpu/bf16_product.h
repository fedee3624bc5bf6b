// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Queries whose logits are computed together: with the keys and values of a step, they fit into the nearest caches.
inline constexpr int kStrip = 32;
/// Padding of head dimensions: the depth of an AMX tile product.
inline constexpr int kDepth = 32;

/// A product of bf16 factors for one strip, with f32 sums.
struct StripProduct {
  const std::uint16_t* left = nullptr;   ///< [rows][depth]
  const std::uint32_t* right = nullptr;  ///< [depth / 2][kStrip] pairs, the even row in the lower half
  float* sums = nullptr;                 ///< [rows][kStrip]
  int rows = 0;                          ///< a multiple of 32
  int depth = 0;                         ///< a multiple of kDepth
};

/// Multiplies by AMX tiles. REQUIRES: an AmxScope, has_amx_bf16().
void multiply_by_tiles(const StripProduct& product, Start start);

/// Multiplies by AVX-512 vectors. REQUIRES: multiplies_bf16().
void multiply_by_vectors(const StripProduct& product, Start start);

}  // namespace winnow::attention::cpu
