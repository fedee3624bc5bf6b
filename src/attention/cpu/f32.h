// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Bytes of run_tiles_f32()'s own work space, in addition to that of every block.
std::size_t f32_bytes(int queries);

/// Products of f32 with the widest vectors. Reads q_strips; updates o_strips, base and sum; retains probabilities
/// unrounded. REQUIRES: strip = queries, width a multiple of kRegisterRows, queries one of kQueryPadding.
void run_tiles_f32(const Block& block);

}  // namespace winnow::attention::cpu
