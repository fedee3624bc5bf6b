// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/attention.h"
#include "attention/cpu/bf16_product.h"
#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// How the blocks of a kernel are made.
struct BlockShape {
  int queries;  ///< enough that converting a tile of keys is paid for by many queries, few enough for the second-level
                ///< cache
  int padding;  ///< of queries
  int depth;    ///< padding of head dimensions
  /// Most retained probabilities, for each thread: blocks with observed rows are narrower in longer prompts, but for
  /// one padding. Those of bf16 are to stay in the second-level cache: four times as many are 15 % slower, though keys
  /// are then packed less often.
  int retained;
};

constexpr BlockShape block_shape(ComputeType compute_type) {
  if (compute_type == ComputeType::f32) return {192, kQueryPadding, kRegisterRows, 2 << 20};
  return {768, kStrip, kDepth, 4 << 20};
}

/// Most tokens of an item (blocks that one thread computes one after the other) in a chunk of `count` tokens.
int item_tokens(const Shape& shape, ComputeType compute_type, int count);

/// Tokens of a block that retains the probabilities of so many keys, in an item of so many tokens.
int observed_block(const Shape& shape, const BlockShape& form, int keys, int tokens);

/// Floats in which so many queries of a block retain their probabilities of whole tiles, with the tiles' weights.
constexpr std::size_t retained_floats(ComputeType compute_type, int queries, int tiles) {
  return static_cast<std::size_t>(queries) * static_cast<std::size_t>(tiles) *
         static_cast<std::size_t>(1 + Retained{compute_type}.tile_rows());
}

/// Tiles of the recorded ones among keys [0, seen).
struct TileRange {
  int first = 0;
  int end = 0;

  int count() const { return end - first; }
};
TileRange recorded_tiles(ComputeType compute_type, KeyRange recorded, int seen);

/// Whether any of rows [first, first + count) of a prompt of n tokens is observed.
bool observes_any(const ObservedRows& observed, int n, int first, int count);

}  // namespace winnow::attention::cpu
