// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "base/rope.h"
#include "cache/scratch.h"
#include "documents/document.h"
#include "model/hparams.h"
#include "winnow/error.h"

namespace winnow::documents {

/// Rotation of keys: to the joint position, or as stored, from position 0.
enum class KeyPlaces : std::uint8_t { shifted, raw };

/// Token ranges of each document, [document], ascending.
using TokenRanges = std::vector<std::vector<TokenRange>>;

/// Concatenated documents. Document i begins at the number of tokens of all earlier ones.
class Joint {
 public:
  Joint(std::span<const std::shared_ptr<const Document>> documents, const model::Hparams& hparams);

  int count() const { return static_cast<int>(documents_.size()); }
  int tokens() const { return offsets_.back(); }
  int offset(int document) const { return offsets_[document]; }
  const Document& document(int i) const { return *documents_[i]; }
  BlockLayout layout(int i) const { return document(i).head().layout(); }
  int document_of(int position) const;
  /// The stored tokens, each document with its own BOS.
  std::vector<std::int32_t> token_ids() const;
  std::int32_t token_id(int position) const;
  bool has_compressed() const;
  const model::Hparams& hparams() const { return *hparams_; }

  TokenRanges everything() const;
  /// Initial and local blocks of each document.
  TokenRanges edges() const;

 private:
  std::vector<std::shared_ptr<const Document>> documents_;
  std::vector<int> offsets_;  ///< [document + 1]
  const model::Hparams* hparams_;
};

/// Joint positions of the tokens in `stretches`.
std::vector<std::int32_t> positions_of(const Joint& joint, const TokenRanges& stretches);

/// Ranges of the tokens at joint positions, which are ascending.
TokenRanges ranges_of(const Joint& joint, std::span<const std::int32_t> positions);

/// One of several documents cannot be read. The message is the store's.
class UnreadableError : public InputError {
 public:
  /// REQUIRES: `why` is being handled.
  UnreadableError(const InputError& why, int document)
      : InputError(why), document_(document), cause_(std::current_exception()) {}
  int document() const { return document_; }
  /// The store's exception.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  int document_;
  std::exception_ptr cause_;
};

/// Holds stored entries of one layer of several documents in a scratch, with keys rotated to their joint positions.
class JointScratch {
 public:
  JointScratch(MemoryAccount& account, ElementType type, const Joint& joint, int capacity,
               KeyPlaces places = KeyPlaces::shifted);

  /// Replaces the scratch's rows by these. This and the next two functions throw UnreadableError if a document is
  /// damaged or gone.
  void load(int layer, const TokenRanges& stretches);
  /// Appends rows. Returns the first one.
  int append(int layer, const TokenRanges& stretches);
  /// Loads all entries of documents whose lanes may differ. The scratch has rows for all tokens; returns the rows that
  /// exist in each KV head.
  std::vector<std::vector<std::int32_t>> load_all(int layer);
  /// Number of rows loaded by load() at positions below `end`.
  std::int32_t rows_below(std::int32_t end) const;
  bool holds(std::int32_t position) const;

  cache::LayerScratch& scratch() { return scratch_; }
  int loaded() const { return loaded_; }
  /// One row's keys or values, [H_kv][d].
  void keys(int row, std::span<float> out) const { gather(&cache::LayerScratch::keys, row, out); }
  void values(int row, std::span<float> out) const { gather(&cache::LayerScratch::values, row, out); }

 private:
  void gather(cache::Rows (cache::LayerScratch::*of)(int) const, int row, std::span<float> out) const;
  void begin_layer(int layer);
  void load_part(const LayerPart& part, int document, int row);
  void move(int document, std::span<float> keys);

  const Joint& joint_;
  KeyPlaces places_;
  cache::LayerScratch scratch_;
  int loaded_ = 0;
  int layer_ = 0;
  /// [kind of layers][document]: angles by which the document's keys are rotated; empty: they stay.
  std::vector<std::vector<std::vector<float>>> angles_;
};

}  // namespace winnow::documents
