// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/attention.h"
#include "attention/cpu/bf16_product.h"
#include "attention/cpu/block.h"

namespace winnow::attention::cpu {

/// Block sizes of a kernel.
struct BlockShape {
  int queries;  ///< large enough to amortise the conversion of a tile of keys, small enough for the L2 cache
  int padding;  ///< padding of queries
  int depth;    ///< padding of head dimensions
  /// Limit of retained probabilities per thread: blocks with observed rows get narrower in longer prompts, down to one
  /// padding. In bf16 they should stay in the L2 cache: with four times as many, it is 15 % slower, although keys are
  /// packed less often.
  int retained;
};

constexpr BlockShape block_shape(ComputeType compute_type) {
  if (compute_type == ComputeType::f32) return {192, kQueryPadding, kRegisterRows, 2 << 20};
  return {768, kStrip, kDepth, 4 << 20};
}

/// Maximum number of tokens of an item (blocks that one thread computes one after the other) in a chunk of `count`
/// tokens.
int item_tokens(const Shape& shape, ComputeType compute_type, int count);

/// Tokens of a block that retains the probabilities of `keys` keys, in an item of `tokens` tokens.
int recorded_block(const Shape& shape, const BlockShape& form, int keys, int tokens);

/// Floats for retained probabilities, [queries][tiles], and the tiles' weights.
constexpr std::size_t retained_floats(ComputeType compute_type, int queries, int tiles) {
  return static_cast<std::size_t>(queries) * static_cast<std::size_t>(tiles) *
         static_cast<std::size_t>(1 + Retained{compute_type}.tile_rows());
}

/// Tiles with recorded keys among keys [0, seen).
struct TileRange {
  int first = 0;
  int end = 0;

  int count() const { return end - first; }
};
TileRange recorded_tiles(ComputeType compute_type, KeyRange recorded, int seen);

/// True if any of rows [first, first + count) of a prompt of n tokens is observed.
bool contains_any(const QueryRowSet& observed, int n, int first, int count);

}  // namespace winnow::attention::cpu
