// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "attention/attention.h"
#include "cache/element.h"

namespace winnow::attention::cpu {

/// Keys that a block processes together. A tile of f32 keys and one of values fit into the L1 cache at d = 64; tiles of
/// half as many bf16 keys would read and write o_strips twice as often.
constexpr int tile_keys(ComputeType compute_type) { return compute_type == ComputeType::f32 ? 64 : 128; }
/// Rows of the f32 register tile: head dimensions and key counts are padded to it with zeros.
inline constexpr int kRegisterRows = 8;
/// Queries of an f32 block are padded to a multiple of this: the widest vector of any target.
inline constexpr int kQueryPadding = 16;

/// Keys of a tile that are hidden from some query.
enum class Hidden : std::uint8_t { none, last, first_and_last };

/// Initial value of a product's sums.
enum class Start : std::uint8_t { from_zero, from_memory };

constexpr int padded(int n, int to) { return (n + to - 1) / to * to; }

/// Probabilities of the queries of consecutive tiles, as the products left them: for each tile [queries /
/// strip][rows][strip], where a row is a key in f32, or a pair of keys in bf16.
struct Retained {
  ComputeType compute_type = ComputeType::f32;
  float* floats = nullptr;
  int queries = 0;
  int strip = 0;

  /// Keys per row.
  constexpr int row_keys() const { return compute_type == ComputeType::f32 ? 1 : 2; }
  constexpr int tile_rows() const { return tile_keys(compute_type) / row_keys(); }
  /// Address of a query's probability of a key, and of the other key in its row.
  float* row(int key, int query) const {
    const std::ptrdiff_t rows = tile_rows();
    const int tile = key / tile_keys(compute_type);
    const int row = key % tile_keys(compute_type) / row_keys();
    return floats + tile * rows * queries + query / strip * rows * strip + static_cast<std::ptrdiff_t>(row) * strip +
           query % strip;
  }
  float at(int key, int query) const {
    const float* const here = row(key, query);
    if (compute_type == ComputeType::f32) return *here;
    const auto pair = std::bit_cast<std::uint32_t>(*here);
    return std::bit_cast<float>(key % 2 == 0 ? pair << 16 : pair & 0xffff0000U);
  }
};

/// Consecutive tokens in the G heads that share a KV head, and all keys that they see: the leading rows, and at most
/// one more row for each token. Each token has a query in each head, with the index head * tokens + token. Queries are
/// laid out along the vector, so neither keys nor values need to be transposed, and softmax needs no sums within a
/// vector.
struct Block {
  const float* q = nullptr;  ///< [tokens][token_stride], from the first token and first head of the group; heads are d
                             ///< apart
  float* out = nullptr;      ///< the same shape
  int token_stride = 0;      ///< floats
  int tokens = 0;
  int group = 0;
  int head_dim = 0;
  float scale = 0;
  float cap = 0;                          ///< soft cap of logits; 0: none
  const float* sink_logits = nullptr;     ///< [group]; null: none
  int first_key = 0;                      ///< position in the prompt of token 0, for column statistics
  const std::int32_t* leading = nullptr;  ///< [tokens] token t sees keys before leading[t]; ascending
  const std::int32_t* own = nullptr;      ///< [tokens] also sees this key; negative: none. Null: none for all
  const std::int32_t* from = nullptr;     ///< [tokens] sees leading keys from this one on; ascending. Null: all
  float* logsum = nullptr;                ///< [tokens][logsum_stride], from the first token and first head; may be null
  int logsum_stride = 0;
  const float* row_scales = nullptr;  ///< [tokens] for requests with a RowScale; null: none
  cache::Rows keys;
  cache::Rows values;
  ComputeType compute_type = ComputeType::f32;
  // Work space of one thread.
  int width = 0;              ///< padded d
  int queries = 0;            ///< padded group * tokens
  int strip = 0;              ///< contiguous queries; divides `queries`
  float* q_strips = nullptr;  ///< [queries / strip][width][strip], scaled so that logits are in units of ln 2 or, with
                              ///< a cap, of the cap
  float* o_strips = nullptr;  ///< [queries / strip][width][strip]
  float* base = nullptr;      ///< [queries] reference of the exponentials: about the largest logit, in units of ln 2
  float* sum = nullptr;       ///< [queries] sum of exponentials; its inverse after the block has run
  float* limit = nullptr;     ///< [queries] last visible leading key
  float* first = nullptr;     ///< [queries] first visible leading key; REQUIRES: set if `from` is
  float* tile = nullptr;      ///< f32 [keys of a tile][width]
  std::byte* work = nullptr;  ///< work_bytes()
  // Tiles [first_retained, end_retained) of probabilities are retained.
  int first_retained = 0;
  int end_retained = 0;
  float* retained = nullptr;  ///< [retained_tiles()] of Retained
  /// The same queries, with the same work space, over the keys of the past; null: none.
  const Block* past = nullptr;
  float* tile_weight = nullptr;  ///< [retained_tiles()][queries]

  /// Factor of the queries.
  float query_scale() const { return cap > 0 ? scale / cap : scale * std::numbers::log2e_v<float>; }
  /// The cap for logits in units of ln 2.
  float cap_of_powers() const { return cap * std::numbers::log2e_v<float>; }
  /// Index of a query's element 0 in q_strips and o_strips; its elements are `strip` apart.
  std::ptrdiff_t first_of(int query) const {
    return static_cast<std::ptrdiff_t>(query / strip) * strip * width + query % strip;
  }
  int visible_keys() const { return leading[tokens - 1]; }
  int tiles() const { return padded(visible_keys(), tile_keys(compute_type)) / tile_keys(compute_type); }
  /// The first tile that is seen by a token, or retained.
  int first_tile() const {
    const int seen = from == nullptr ? 0 : from[0] / tile_keys(compute_type);
    return retained_tiles() > 0 ? std::min(seen, first_retained) : seen;
  }
  int retained_tiles() const { return end_retained - first_retained; }
  bool retains(int number) const { return number >= first_retained && number < end_retained; }
  /// REQUIRES: retains(number).
  Retained tile_of(int number) const {
    Retained p{compute_type, retained, queries, strip};
    p.floats += static_cast<std::ptrdiff_t>(number - first_retained) * p.tile_rows() * queries;
    return p;
  }
  float* weight_of(int number) const {
    return tile_weight + static_cast<std::ptrdiff_t>(number - first_retained) * queries;
  }
};

/// Bytes of Block::work. REQUIRES: compute_type, width and queries are set.
std::size_t work_bytes(const Block& block);

/// Computes `out`. Afterwards the probability A[query, key] of a retained tile is tile_of(tile).at(key, query) *
/// weight_of(tile)[query], and 0 for hidden keys.
void run_block(const Block& block);

}  // namespace winnow::attention::cpu
