// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Bytes of work space that run_tiles_f32() needs beside what every block has.
std::size_t f32_bytes(int queries);

/// Products of f32 by the widest vectors: takes q_strips to o_strips, base and sum, and retains probabilities as they
/// are. REQUIRES: strip = queries, width a multiple of kRegisterRows, queries one of kQueryPadding.
void run_tiles_f32(const Block& block);

}  // namespace winnow::attention::cpu
