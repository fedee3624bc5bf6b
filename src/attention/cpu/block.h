#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/element.h"

namespace winnow::attention::cpu {

/// Keys that pass through a block together. A tile of f32 keys and one of values fit the first-level cache at d = 64.
inline constexpr int kTileKeys = 64;
/// Rows of the register tile: head dimensions and key counts are padded to it with zeros.
inline constexpr int kRegisterRows = 8;
/// Queries of a block are padded to a multiple of this many: the widest vector of any target.
inline constexpr int kLanePadding = 16;

constexpr int padded(int n, int to) { return (n + to - 1) / to * to; }

/// Some consecutive queries of the G heads that share a KV head, against all keys that they see: leading rows, and maybe a row of its own
/// for each. Everything is laid out with the queries
/// along the vector ("lanes", lane = head in group * tokens + token), so neither keys nor values need to be transposed and softmax needs no
/// horizontal step.
struct Block {
  const float* q = nullptr;  ///< first token, first head of the group; [tokens][token_stride], heads d apart
  float* out = nullptr;      ///< the same shape
  int token_stride = 0;      ///< floats
  int tokens = 0;
  int group = 0;
  int head_dim = 0;
  float scale = 0;
  int first_key = 0;                      ///< of a prompt: the place of token 0, which observers know it by
  const std::int32_t* leading = nullptr;  ///< [tokens] token t sees keys [0, leading[t]); ascending
  const std::int32_t* own = nullptr;      ///< [tokens] and this one; negative: none. Null: none for all
  float* logsum = nullptr;                ///< first token, first head: [tokens][logsum_stride]; may be null
  int logsum_stride = 0;
  cache::Rows keys;
  cache::Rows values;
  // Work space of one thread.
  int lanes = 0;             ///< padded(group * tokens, kLanePadding)
  float* q_lanes = nullptr;  ///< [padded d][lanes]
  float* o_lanes = nullptr;  ///< [padded d][lanes]
  float* max = nullptr;      ///< [lanes] largest logit, in units of ln 2
  float* sum = nullptr;      ///< [lanes]
  float* limit = nullptr;    ///< [lanes] last leading key that a lane sees
  float* tile = nullptr;     ///< [kTileKeys][padded d]
  float* p = nullptr;        ///< [kTileKeys][lanes]
  // Tiles [first_retained, end_retained) of probabilities are retained.
  int first_retained = 0;
  int end_retained = 0;
  float* retained = nullptr;     ///< [retained_tiles()][kTileKeys][lanes]
  float* tile_weight = nullptr;  ///< [retained_tiles()][lanes]

  int visible_keys() const { return leading[tokens - 1]; }
  int tiles() const { return padded(visible_keys(), kTileKeys) / kTileKeys; }
  int retained_tiles() const { return end_retained - first_retained; }
  bool retains(int number) const { return number >= first_retained && number < end_retained; }
  /// REQUIRES: retains(number).
  float* tile_of(int number) const { return retained + static_cast<std::ptrdiff_t>(number - first_retained) * kTileKeys * lanes; }
  float* weight_of(int number) const { return tile_weight + static_cast<std::ptrdiff_t>(number - first_retained) * lanes; }
};

/// Computes `out`. The probability A[lane, key] of a retained tile is then its [key][lane] * weight_of(tile)[lane] (0 where the mask is).
void run_block(const Block& block);

/// Some lanes of some retained keys of one tile.
struct Columns {
  const float* p = nullptr;  ///< first lane of the first key
  int stride = 0;            ///< floats from one key to the next
  int keys = 0;
  const float* weight = nullptr;  ///< [lanes]
  int lanes = 0;
};

/// out[key] += sum of p * weight over the lanes.
void add_to_sums(const Columns& columns, float* out);
/// out[key] = the largest of out[key] and p * weight.
void raise_maxima(const Columns& columns, float* out);

}  // namespace winnow::attention::cpu
