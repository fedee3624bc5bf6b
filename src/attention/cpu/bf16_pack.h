// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention/cpu/bf16_product.h"

namespace winnow::attention::cpu {

/// Rounds keys [first, first + count) to `keys` [tile_keys][width], and their values, transposed, to `values`
/// [width][tile_keys], both padded with zeros. REQUIRES: multiplies_bf16(), as below.
void pack_rows(const Block& block, int first, int count, std::uint16_t* keys, std::uint16_t* values);

/// Rounds q_strips to [strips][width / 2][kStrip] pairs.
void pack_queries(const Block& block, std::uint32_t* out);

}  // namespace winnow::attention::cpu
