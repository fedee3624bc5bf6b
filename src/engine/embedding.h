// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "engine/cache_source.h"
#include "engine/prompt_reading.h"
#include "model/hparams.h"
#include "model/pooling.h"

namespace winnow::engine {

/// The sum of some rows of a text on the way to their mean, or the last of them.
class PooledRows {
 public:
  PooledRows(model::Pooling pooling, int width);
  /// Takes rows in order, [rows][width].
  void add(std::span<const float> rows);
  /// The vector, of length 1; a vector of zeros stays as it is. Afterwards it is empty again.
  std::vector<float> take();

 private:
  model::Pooling pooling_;
  std::vector<double> vector_;
};

/// Embeddings of texts, as a request among others: each text is read by itself, and its last hidden states, which the
/// final norm has scaled, become one vector. Nothing is left of a text but that: the cache that the request ends with
/// is that of the last text, with as little as a method keeps.
class EmbeddingSource : public CacheSource {
 public:
  using Told = std::function<void(std::vector<float>)>;

  /// `tell` hears the vector of each text, in order, from within Scheduler::advance(). REQUIRES: at least one text,
  /// none empty, tokens of the vocabulary.
  EmbeddingSource(std::vector<std::vector<Token>> texts, model::Pooling pooling, Told tell);

  int tokens() const override { return tokens_; }
  std::size_t bytes(const Session::Impl& session) const override;
  std::size_t cache_bytes(const Session::Impl& session) const override;
  void begin(Session::Impl& session) override;
  bool advance() override;
  double done() const override;
  Cache take_cache() override { return std::move(*cache_); }
  std::vector<float> take_logits() override { return {}; }

  /// How caches are kept that nobody asks for: the least that a method works with.
  static CacheOptions keep();

 private:
  std::size_t longest() const;
  void begin_text();
  /// Returns false when all rows of the text are pooled.
  bool pool();
  void end_text();

  std::vector<std::vector<Token>> texts_;
  model::Pooling pooling_;
  Told tell_;
  int tokens_ = 0;  ///< of all texts
  Session::Impl* session_ = nullptr;
  CacheOptions keep_ = keep();
  std::size_t text_ = 0;  ///< that is being read
  int before_ = 0;        ///< tokens of the texts that have been read
  std::optional<PromptReading> reading_;
  bool has_passed_ = false;  ///< the text through all layers
  int pooled_ = 0;           ///< of its rows
  std::optional<PooledRows> rows_;
  std::optional<Cache> cache_;
};

}  // namespace winnow::engine
