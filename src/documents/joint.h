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

/// True if keys move with their document or stay rotated as from position 0.
enum class KeyPlaces : std::uint8_t { shifted, raw };

/// Some tokens of each document, [document], ascending.
using TokenRanges = std::vector<std::vector<TokenRange>>;

/// Documents one after the other: document i begins at the number of all tokens before it.
class Joint {
 public:
  Joint(std::span<const std::shared_ptr<const Document>> documents, const model::Hparams& hparams);

  int count() const { return static_cast<int>(documents_.size()); }
  int tokens() const { return offsets_.back(); }
  int offset(int document) const { return offsets_[document]; }
  const Document& document(int i) const { return *documents_[i]; }
  BlockLayout layout(int i) const { return document(i).head().layout(); }
  int document_of(int position) const;
  /// Tokens as they were stored, each document with its own BOS.
  std::vector<std::int32_t> token_ids() const;
  std::int32_t token_id(int position) const;
  bool has_compressed() const;
  const model::Hparams& hparams() const { return *hparams_; }

  TokenRanges everything() const;
  /// Initial and local blocks.
  TokenRanges edges() const;

 private:
  std::vector<std::shared_ptr<const Document>> documents_;
  std::vector<int> offsets_;  ///< [document + 1]
  const model::Hparams* hparams_;
};

/// Joint positions of the tokens in `stretches`.
std::vector<std::int32_t> positions_of(const Joint& joint, const TokenRanges& stretches);

/// Tokens at joint positions, ascending, as stretches.
TokenRanges ranges_of(const Joint& joint, std::span<const std::int32_t> positions);

/// One of several documents cannot be read; the sentence is the store's.
class UnreadableError : public InputError {
 public:
  /// REQUIRES: `why` is being handled.
  UnreadableError(const InputError& why, int document)
      : InputError(why), document_(document), cause_(std::current_exception()) {}
  int document() const { return document_; }
  /// What the store has thrown.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  int document_;
  std::exception_ptr cause_;
};

/// Stored entries of one layer of several documents in a scratch, keys moved to their joint places.
class JointScratch {
 public:
  JointScratch(MemoryAccount& account, ElementType type, const Joint& joint, int capacity,
               KeyPlaces places = KeyPlaces::shifted);

  /// Empties the scratch and fills it. This and the next two throw UnreadableError when a document is damaged or gone.
  void load(int layer, const TokenRanges& stretches);
  /// Adds rows after those that are there; returns the first.
  int append(int layer, const TokenRanges& stretches);
  /// All entries of documents whose lanes may differ: rows of all tokens, and for each KV head those that are there.
  std::vector<std::vector<std::int32_t>> load_all(int layer);
  /// Number of rows, of those that load() filled, at positions below `end`.
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
  /// [kind of layers][document] by which its keys are rotated further; empty: they stay
  std::vector<std::vector<std::vector<float>>> angles_;
};

}  // namespace winnow::documents
