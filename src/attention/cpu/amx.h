#pragma once

#include <cstddef>

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Lanes whose logits are computed together: with the keys and values of a step they stay in the first-level cache.
inline constexpr int kAmxStrip = 32;
/// What head dimensions are padded to: the depth of one tile product.
inline constexpr int kAmxDepth = 32;

/// Bytes of work space that run_tiles_amx() needs beside what every block has.
std::size_t amx_bytes(int width, int lanes);

/// Products of bf16 by AMX's tiles: takes q_lanes to o_lanes, top and sum, and retains probabilities as pairs of bf16.
/// REQUIRES: has_amx_bf16(), strip = kAmxStrip, width a multiple of kAmxDepth.
void run_tiles_amx(const Block& block);

}  // namespace winnow::attention::cpu
