// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "attention/products.h"
#include "base/worker.h"
#include "cache/scratch.h"
#include "winnow/policy/attention.h"

namespace winnow::attention {

/// Attention within tiles, chunk by chunk while a prompt passes through a layer. A tile is computed when its last token
/// arrives; until then its queries are kept.
class TileAttention {
 public:
  /// Adds to `statistics`, which must outlive this object.
  TileAttention(ColumnStatistics& statistics, const Tiles& tiles, int head_dim);
  /// Bytes for a prompt of `tokens` tokens in a layer of this shape.
  static std::size_t bytes(const Shape& shape, const Tiles& tiles, int tokens);

  /// Adds rows [first, first + rows) of the scratch, with queries [rows][H_q][d]. Rows arrive in order, from row 0 on.
  /// Each member of a team takes some heads.
  void add(const float* q, const cache::LayerScratch& scratch, int first, int rows, Worker worker);

 private:
  /// Tokens [begin, end).
  struct Tile {
    int begin;
    int end;
  };
  /// The rows that have arrived.
  struct Chunk {
    const float* q;
    int first;
    int end;
  };

  /// Query heads [begin, end).
  struct Heads {
    int begin;
    int end;
  };

  void add_tile(const Chunk& chunk, const cache::LayerScratch& scratch, Heads heads, const Tile& tile);
  void add_rows(const Chunk& chunk, const PackedRows& keys, int head, const Tile& tile);
  /// The first token after all tiles.
  int end() const { return statistics_.size() - tiles_.after; }
  /// The tile of a token, or the first one after it; empty after the last one.
  Tile tile_of(int token) const;
  Tile next(const Tile& tile) const { return tile_of(tile.begin + tiles_.length); }
  const float* query(const Chunk& chunk, int head, int token, const Tile& tile) const;
  /// Index of a tile's query in queries_.
  std::ptrdiff_t place(int head, int in_tile) const {
    return (static_cast<std::ptrdiff_t>(in_tile) * heads_ + head) * dim_;
  }

  ColumnStatistics& statistics_;
  Tiles tiles_;
  int heads_;
  int dim_;
  CountedVector<float> queries_;  ///< [tile length][H_q][d] of the incomplete tile
};

}  // namespace winnow::attention
