#pragma once

#include <optional>

#include "attention/cpu/block.h"
#include "attention/cpu/observe.h"
#include "base/tiles.h"

namespace winnow::attention::cpu {

/// While one is alive the thread's tiles are configured for the functions that multiply by them; for products of f32,
/// and on machines without AMX, nothing is done.
class AmxScope {
 public:
  explicit AmxScope(Products products);

 private:
  std::optional<TileScope> tiles_;
};

/// Adds each key's probabilities times `mask` [tokens] over the tokens of each head, for the retained keys of the
/// range. REQUIRES: an AmxScope, has_amx_bf16(), and a block that run_tiles_bf16() went through.
void add_sums_amx(const Block& block, const float* mask, KeyRange keys, const Record& record);

}  // namespace winnow::attention::cpu
