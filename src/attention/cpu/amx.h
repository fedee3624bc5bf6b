#pragma once

#include <cstddef>
#include <optional>

#include "attention/cpu/block.h"
#include "attention/cpu/observe.h"
#include "base/tiles.h"

namespace winnow::attention::cpu {

/// Lanes whose logits are computed together: with the keys and values of a step they stay in the first-level cache.
inline constexpr int kAmxStrip = 32;
/// What head dimensions are padded to: the depth of one tile product.
inline constexpr int kAmxDepth = 32;

/// While one is alive the thread's tiles are configured for the functions below; for products of f32 nothing is done.
class AmxScope {
 public:
  explicit AmxScope(Products products);

 private:
  std::optional<TileScope> tiles_;
};

/// Bytes of work space that run_tiles_amx() needs beside what every block has.
std::size_t amx_bytes(int width, int lanes);

/// Products of bf16 by AMX's tiles: takes q_lanes to o_lanes, top and sum, and retains probabilities as pairs of bf16.
/// REQUIRES: an AmxScope, has_amx_bf16(), strip = kAmxStrip, width a multiple of kAmxDepth.
void run_tiles_amx(const Block& block);

/// Adds each key's probabilities times `mask` [tokens] over the tokens of each head, for the retained keys of the range.
/// REQUIRES: an AmxScope, and a block that run_tiles_amx() went through.
void add_sums_amx(const Block& block, const float* mask, KeyRange keys, const Record& record);

}  // namespace winnow::attention::cpu
