// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/layers.h"
#include "engine/window_lanes.h"
#include "model/hparams.h"
#include "policy/sequence_layer.h"
#include "winnow/session.h"

namespace winnow::engine {

/// What a Cache holds of one sequence: its layers, and how far it has been read. It begins with empty layers, each of
/// which is then committed or loaded.
class Sequence {
 public:
  /// For such a prompt. `hparams` and `account` outlive it; the layers report to `account`. Throws UsageError when the
  /// budget is too small for the method.
  Sequence(const CacheOptions& options, const model::Hparams& hparams, MemoryAccount& account, const PromptSize& size);
  Sequence(Sequence&&) noexcept = default;
  Sequence& operator=(Sequence&&) = delete;
  ~Sequence() = default;
  /// A copy with memory of its own. Throws MemoryError.
  Sequence clone() const;

  const CacheOptions& options() const { return options_; }
  /// Of the layers without a window.
  const policy::Method& method() const { return options_.spec.method(); }
  const model::Hparams& hparams() const { return *hparams_; }

  /// Whether figures of what is kept and read are of this layer, too: not where a window says it.
  bool counts(int l) const { return hparams_->layer(l).window == 0 || hparams_->n_global == 0; }

  /// Those that have keys and values: numbers here are below that.
  int layers() const { return static_cast<int>(layers_.size()); }
  policy::SequenceLayer& layer(int l) { return layers_[l]; }
  const policy::SequenceLayer& layer(int l) const { return layers_[l]; }
  cache::GrowingLanes& lanes(int l) { return layers_[l].lanes(); }
  const cache::GrowingLanes& lanes(int l) const { return layers_[l].lanes(); }

  /// Makes room for a step of `count` tokens. Throws MemoryError.
  void reserve(int count);
  /// A step is over that all layers have read.
  void end_step();
  /// Puts what another sequence of the same method keeps, of tokens from `position` on, in the place of what is kept of
  /// them here. Throws MemoryError.
  void put_from(int position, Sequence&& others);

  /// Adds what another sequence of the same method keeps of the tokens that come next, as its steps would have added
  /// it. REQUIRES: it keeps all of them in layers without a window, and steps would do nothing else to these. Throws
  /// MemoryError before anything has changed.
  void append(Sequence&& others);

  /// None where no layer has a window. Throws MemoryError.
  std::shared_ptr<const WindowLanes> copy_windows() const;
  /// Puts such a copy back. Throws MemoryError.
  void put_back(const WindowLanes& windows);

  /// The limits of all layers, [layer][KV head].
  std::vector<std::vector<int>> limits() const;
  /// Bytes allocated for the lanes now.
  std::size_t bytes_held() const { return account_->held(); }
  /// Entries in all lanes of layers that count().
  std::size_t entries_held() const;

  int seen = 0;               ///< tokens seen, and so the position of the next one
  std::vector<Token> tokens;  ///< [seen], for penalties; kept ones and evicted ones
  /// Entries that the last step's queries read, over KV heads of layers that count(). Negative: no step yet.
  std::int64_t attended = -1;

 private:
  friend class SequenceCopy;
  struct WithoutLayers {};
  Sequence(const Sequence& other, WithoutLayers);

  CacheOptions options_;
  const model::Hparams* hparams_;
  MemoryAccount* parent_;                   ///< the session's
  std::unique_ptr<MemoryAccount> account_;  // stable address: buffers point to it
  std::vector<policy::SequenceLayer> layers_;
};

/// A copy of a sequence that is made a layer at a time.
class SequenceCopy {
 public:
  /// `of` outlives it and does not change meanwhile.
  explicit SequenceCopy(const Sequence& of);
  /// Copies the next layer. Returns false when it was the last one. Throws MemoryError.
  bool advance();
  /// REQUIRES: advance() has returned false.
  std::unique_ptr<Sequence> take() { return std::move(copy_); }

 private:
  const Sequence& of_;
  std::unique_ptr<Sequence> copy_;
};

}  // namespace winnow::engine
