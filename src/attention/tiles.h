// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
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

  /// The first row that no tile contains which is complete in any prompt with the first `rows` rows. A state has the
  /// sums of the rows before it, and the queries of the others.
  static int end_of_sums(const Tiles& tiles, int rows);
  static std::size_t state_bytes(const Shape& shape, const Tiles& tiles, int rows);
  /// Continues after the first `rows` rows.
  void take_state(int rows, std::span<const std::byte> state);
  /// Writes the state after the first `rows` rows: the queries while they pass, the sums at write_sums(). Several
  /// states can be kept.
  void keep_state(int rows, std::span<std::byte> state);
  /// Writes the sums of the states that are kept. REQUIRES: all rows have been added.
  void write_sums() const;

  /// Adds rows [first, first + rows) of the scratch, with queries [rows][H_q][d]. Rows arrive in order, from row 0 on
  /// or from those of the state. Each member of a team takes some heads.
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
  /// The first tile that no earlier chunk has completed.
  Tile first_tile(const Chunk& chunk) const {
    return tile_of(is_first(chunk) ? end_of_sums(tiles_, taken_rows_) : chunk.first);
  }
  /// True for the first chunk after a state.
  bool is_first(const Chunk& chunk) const { return taken_rows_ > 0 && chunk.first == taken_rows_; }
  /// The row of the query that is first in queries_ when a chunk arrives.
  int first_query(const Chunk& chunk) const { return first_tile(chunk).begin; }
  const float* query(const Chunk& chunk, int head, int token) const;
  /// Keeps the queries of a tile that a later chunk completes.
  void keep_queries(const Chunk& chunk, int head, const Tile& tile);
  /// Copies queries of the chunk to the states that are kept.
  void write_queries(const Chunk& chunk, int head) const;
  /// Index of a tile's query in queries_.
  std::ptrdiff_t place(int head, int in_tile) const {
    return (static_cast<std::ptrdiff_t>(in_tile) * heads_ + head) * dim_;
  }

  ColumnStatistics& statistics_;
  Tiles tiles_;
  int heads_;
  int dim_;
  CountedVector<float> queries_;  ///< [rows][H_q][d] of the incomplete tile, or of the state
  int taken_rows_ = 0;            ///< rows of the state with which this began; 0: none
  /// Destinations of states, by rows: sums [H_q][rows], then queries [rows][H_q][d].
  std::map<int, std::span<float>> kept_;
};

}  // namespace winnow::attention
