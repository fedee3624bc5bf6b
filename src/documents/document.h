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

/// Documents that were read on their own, to be put together for a question (docs/methods.md, samkv).
namespace winnow::documents {

/// Tokens of a block; the last one of a document may have fewer.
inline constexpr int kBlock = 64;

/// Which blocks of a document are its initial, middle and local ones: block 0, the others, the last two of those after
/// block 0.
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

/// The token of a middle block that the tokens after it attended to the most, by their mean attention to it.
struct Representative {
  std::int32_t token = 0;
  float exponent = 0;   ///< alpha >= 0 of attention ~ distance^-alpha; small: important
  float attention = 0;  ///< the mean

  bool operator==(const Representative&) const = default;
};

/// What asking wants to know of one layer of a document beside its keys and values. Queries and keys are rotated as
/// from position 0.
struct LayerFacts {
  std::vector<float> local_query;               ///< [H_q][d] mean query over the local blocks
  std::vector<float> edge_key;                  ///< [H_kv][d] mean key over the initial and local blocks
  std::vector<float> block_keys;                ///< [middle][H_kv][d] mean key of each middle block
  std::vector<Representative> representatives;  ///< [middle]
  std::vector<std::int32_t> outliers;           ///< tokens whose exponent is a low outlier, ascending
  std::vector<float> received;  ///< [H_kv][N] attention that each token got from those after it, mean over the group

  bool operator==(const LayerFacts&) const = default;
};

/// All that is kept of a document but its keys and values. `layers` is empty for a document that was compressed.
struct DocumentHead {
  engine::SavedHead saved;
  std::vector<LayerFacts> layers;

  BlockLayout layout() const { return {saved.seen}; }
  void write(ByteSink& to) const;
  /// Throws InputError for what cannot be.
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

/// Parts of one layer, [stretch][KV head]. What they point to stays while the lease lives.
struct LayerPart {
  std::vector<std::vector<LanePart>> stretches;
  std::shared_ptr<const void> lease;
};

/// A document whose keys and values can be read, wherever they lie. Reading changes nothing, so that threads may share
/// one.
class Document {
 public:
  virtual ~Document() = default;
  virtual const DocumentHead& head() const = 0;
  /// Some tokens' entries. Throws InputError when they are damaged or gone. REQUIRES: an uncompressed document.
  virtual LayerPart read(int layer, std::span<const TokenRange> stretches) const = 0;
  /// All entries of a layer; the lanes of a compressed document differ in length.
  virtual LayerPart read_all(int layer) const = 0;

  int tokens() const { return head().saved.seen; }
  bool is_compressed() const { return head().layers.empty(); }
};

}  // namespace winnow::documents
