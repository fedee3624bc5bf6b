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

/// The content of a Cache: the layers of one sequence, and how far it has been read. Layers begin empty and are then
/// committed or loaded.
class Sequence {
 public:
  /// Prepares layers for a prompt of this size. `hparams` and `account` outlive it; the layers report to `account`.
  /// Throws UsageError if the budget is too small for the method.
  Sequence(const CacheOptions& options, const model::Hparams& hparams, MemoryAccount& account, const PromptSize& size);
  Sequence(Sequence&&) noexcept = default;
  Sequence& operator=(Sequence&&) = delete;
  ~Sequence() = default;
  /// A copy with memory of its own. Throws MemoryError.
  Sequence clone() const;

  const CacheOptions& options() const { return options_; }
  /// The method of the layers without a window.
  const policy::Method& method() const { return options_.spec.method(); }
  const model::Hparams& hparams() const { return *hparams_; }

  /// True if statistics of entries include this layer. Layers with windows are left out, unless all have one.
  bool counts(int l) const { return hparams_->layer(l).window == 0 || hparams_->n_global == 0; }

  /// Number of layers with keys and values. Indices below are less than that.
  int layers() const { return static_cast<int>(layers_.size()); }
  policy::SequenceLayer& layer(int l) { return layers_[l]; }
  const policy::SequenceLayer& layer(int l) const { return layers_[l]; }
  cache::GrowingLanes& lanes(int l) { return layers_[l].lanes(); }
  const cache::GrowingLanes& lanes(int l) const { return layers_[l].lanes(); }

  /// Reserves memory for a step of `count` tokens. Throws MemoryError.
  void reserve(int count);
  /// Ends a step that has passed through all layers.
  void end_step();
  /// Replaces the entries of tokens from `position` on by those of another sequence of the same method. Throws
  /// MemoryError.
  void put_from(int position, Sequence&& others);

  /// Appends the next tokens' entries of another sequence of the same method, as steps would have done. REQUIRES:
  /// `others` keeps all of these tokens in layers without a window, and steps would not change these layers otherwise.
  /// Throws MemoryError before anything has changed.
  void append(Sequence&& others);

  /// Null if no layer has a window. Throws MemoryError.
  std::shared_ptr<const WindowLanes> copy_windows() const;
  /// Restores such a copy. Throws MemoryError.
  void put_back(const WindowLanes& windows);

  /// The limits of all layers, [layer][KV head].
  std::vector<std::vector<int>> limits() const;
  /// Bytes currently allocated for the lanes.
  std::size_t bytes_held() const { return account_->held(); }
  /// Number of entries in layers that count().
  std::size_t entries_held() const;

  int seen = 0;               ///< tokens seen; the position of the next one
  std::vector<Token> tokens;  ///< [seen], evicted ones included; for penalties
  /// Entries that the last step read, over KV heads of layers that count(). Negative: no step yet.
  std::int64_t attended = -1;

 private:
  friend class SequenceCopy;
  struct WithoutLayers {};
  Sequence(const Sequence& other, WithoutLayers);

  CacheOptions options_;
  const model::Hparams* hparams_;
  MemoryAccount* parent_;                   ///< the session's account
  std::unique_ptr<MemoryAccount> account_;  // stable address: buffers point to it
  std::vector<policy::SequenceLayer> layers_;
};

/// Copies a sequence layer by layer.
class SequenceCopy {
 public:
  /// `of` outlives it and must not change meanwhile.
  explicit SequenceCopy(const Sequence& of);
  /// Copies the next layer. Returns false when it was the last one. Throws MemoryError.
  bool advance();
  /// REQUIRES: advance() has returned false.
  std::unique_ptr<Sequence> take() { return std::move(copy_); }

 private:
  const Sequence& of_;
  std::unique_ptr<Sequence> copy_;
};

/// The sequence behind a cache, for folders that are built on the engine.
inline Sequence& sequence_of(Cache& cache) { return cache.impl(); }
inline const Sequence& sequence_of(const Cache& cache) { return cache.impl(); }

}  // namespace winnow::engine
