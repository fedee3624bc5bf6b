// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// Rows of a prompt, counted from its first one, whose statistics are added up before they are added to those of
/// earlier rows. So the sums after any number of these units depend neither on later rows nor on chunks and threads.
inline constexpr int kSummedRows = 64;

/// Number of units that rows [first, first + count) are part of.
constexpr int units_of(int first, int count) { return (first + count - 1) / kSummedRows - first / kSummedRows + 1; }

/// Tokens [first, first + count) of a chunk.
struct TokenRange {
  int first = 0;
  int count = 0;

  int end() const { return first + count; }
};

/// Division of a chunk into items, which one thread computes, and of items into blocks. If rows are recorded, items end
/// with units of kSummedRows rows, and blocks consist of whole units or of equal parts of one. These parts depend on
/// the unit alone. A last unit that is incomplete has blocks of its own.
class Division {
 public:
  enum class Rows : std::uint8_t { plain, recorded };

  Division() = default;
  Division(const Shape& shape, ComputeType compute_type, const Chunk& chunk, Rows rows);

  /// The longest items first, so that the last ones end at about the same time.
  std::vector<TokenRange> items() const;
  /// Tokens of the block that begins `from` tokens after the item's first one. `rows`: the item's.
  int block_tokens(const TokenRange& item, int from, Rows rows) const;

 private:
  int first_row(const TokenRange& tokens) const { return chunk_.first + tokens.first; }
  /// The most tokens of a block whose last row is before `end`.
  int most_tokens(int end, Rows rows) const;

  ComputeType compute_type_ = ComputeType::f32;
  int group_ = 1;
  Chunk chunk_;
  Rows rows_ = Rows::plain;
};

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

/// Bytes of the work space in which a team collects column statistics of a chunk: the probabilities of a block for each
/// thread, and the statistics of each work item.
std::size_t recording_bytes(const Shape& shape, ComputeType compute_type, int threads, const Chunk& chunk,
                            std::span<const PromptColumns> observed);

}  // namespace winnow::attention::cpu
