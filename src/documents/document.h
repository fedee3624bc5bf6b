// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_stream.h"
#include "cache/element.h"
#include "engine/saved.h"

/// Documents that were read separately, to be combined for a question (docs/methods.md, samkv).
namespace winnow::documents {

/// Tokens of a block; the last one of a document may have fewer.
inline constexpr int kBlock = 64;

/// Initial, middle and local blocks of a document: block 0; the others; the last two after block 0.
struct BlockLayout {
  int tokens = 0;

  int blocks() const { return (tokens + kBlock - 1) / kBlock; }
  int initial() const { return std::min(1, blocks()); }
  int local() const { return std::min(2, blocks() - initial()); }
  int middle() const { return blocks() - initial() - local(); }
  int first_local() const { return blocks() - local(); }
  int begin(int block) const { return block * kBlock; }
  int end(int block) const { return std::min(tokens, (block + 1) * kBlock); }
};

/// The token of a middle block with the largest mean attention from later tokens.
struct Representative {
  std::int32_t token = 0;
  float exponent = 0;   ///< alpha >= 0 of attention ~ distance^-alpha; a small one means an important block
  float attention = 0;  ///< mean attention from later tokens

  bool operator==(const Representative&) const = default;
};

/// Statistics of one layer of a document that ask methods need besides its keys and values. Queries and keys are
/// rotated as from position 0.
struct LayerFacts {
  std::vector<float> local_query;               ///< [H_q][d] mean query over the local blocks
  std::vector<float> edge_key;                  ///< [H_kv][d] mean key over the initial and local blocks
  std::vector<float> block_keys;                ///< [middle][H_kv][d] mean key of each middle block
  std::vector<Representative> representatives;  ///< [middle]
  std::vector<std::int32_t> outliers;           ///< tokens whose exponent is a low outlier, ascending
  std::vector<float> received;  ///< [H_kv][N] attention that each token got from those after it, mean over the group

  bool operator==(const LayerFacts&) const = default;
};

/// Everything stored of a document except its keys and values. `layers` is empty for a compressed document.
struct DocumentHead {
  engine::SavedHead saved;
  std::vector<LayerFacts> layers;

  BlockLayout layout() const { return {saved.seen}; }
  void write(ByteSink& to) const;
  /// Throws InputError for invalid data.
  static DocumentHead read(ByteCursor& from);
};

/// Consecutive entries of one lane, as they are stored.
struct LanePart {
  std::span<const std::int32_t> positions;  ///< from 0 on
  cache::Rows keys;                         ///< rotated to their positions
  cache::Rows values;
};

/// Tokens [begin, end) of a document.
struct TokenRange {
  int begin = 0;
  int end = 0;
};

/// Parts of one layer, [stretch][KV head]. They are valid while `lease` lives.
struct LayerPart {
  std::vector<std::vector<LanePart>> stretches;
  std::shared_ptr<const void> lease;
};

/// A document whose keys and values can be read from its storage. Reading does not change it, so threads may share it.
class Document {
 public:
  virtual ~Document() = default;
  virtual const DocumentHead& head() const = 0;
  /// Reads some tokens' entries. Throws InputError if they are damaged or gone. REQUIRES: an uncompressed document.
  virtual LayerPart read(int layer, std::span<const TokenRange> stretches) const = 0;
  /// Reads all entries of a layer. The lanes of a compressed document differ in length.
  virtual LayerPart read_all(int layer) const = 0;

  int tokens() const { return head().saved.seen; }
  bool is_compressed() const { return head().layers.empty(); }
};

}  // namespace winnow::documents
