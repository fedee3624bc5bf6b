// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Some queries and some retained keys of one tile.
struct Columns {
  Retained p;
  int first_key = 0;  ///< in the tile
  int keys = 0;
  int first_query = 0;
  int queries = 0;
  const float* weight = nullptr;  ///< [queries]
};

/// out[key] += sum of p * weight over the queries.
void add_to_sums(const Columns& columns, float* out);
/// out[key] = the largest of out[key] and p * weight.
void raise_maxima(const Columns& columns, float* out);

}  // namespace winnow::attention::cpu
