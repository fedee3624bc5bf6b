// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Bytes of run_tiles_bf16()'s own work space, in addition to that of every block.
std::size_t bf16_bytes(int width, int queries);

/// Products of bf16 with the machine's best instructions. Reads q_strips; updates o_strips, base and sum; retains
/// probabilities as pairs of bf16. REQUIRES: an AmxScope, multiplies_bf16(), strip = kStrip, width a multiple of
/// kDepth.
void run_tiles_bf16(const Block& block);

}  // namespace winnow::attention::cpu
