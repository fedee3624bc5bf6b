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

/// Accumulates rows of a text: their sum, which is scaled to their mean, or the last one.
class PooledRows {
 public:
  PooledRows(model::Pooling pooling, int width);
  /// Adds rows [rows][width], in order.
  void add(std::span<const float> rows);
  /// Returns the vector, normalised to length 1 unless it is zero, and resets the accumulator.
  std::vector<float> take();

 private:
  model::Pooling pooling_;
  std::vector<double> vector_;
};

/// Computes embeddings of texts as a request of the scheduler. Each text is read by itself, and its last hidden states,
/// after the final norm, are pooled into one vector. The request ends with a small, unused cache of the last text.
class EmbeddingSource : public CacheSource {
 public:
  using Told = std::function<void(std::vector<float>)>;

  /// `tell` receives the vector of each text, in order, from within Scheduler::advance(). Without `pooling`, pools as
  /// the model's file says. REQUIRES: at least one text, no empty text, tokens of the vocabulary.
  EmbeddingSource(std::vector<std::vector<Token>> texts, std::optional<model::Pooling> pooling, Told tell);

  int tokens() const override { return tokens_; }
  std::size_t bytes(const Session::Impl& session) const override;
  std::size_t cache_bytes(const Session::Impl& session) const override;
  void begin(Session::Impl& session) override;
  bool advance() override;
  double done() const override;
  Cache take_cache() override { return std::move(*cache_); }
  std::vector<float> take_logits() override { return {}; }

  /// Options of the unused cache that the request ends with, the smallest possible.
  static CacheOptions keep();

 private:
  std::size_t longest() const;
  void begin_text();
  /// Returns false when all rows of the text are pooled.
  bool pool();
  void end_text();

  std::vector<std::vector<Token>> texts_;
  std::optional<model::Pooling> pooling_;  ///< set by begin() at the latest
  Told tell_;
  int tokens_ = 0;  ///< of all texts
  Session::Impl* session_ = nullptr;
  CacheOptions keep_ = keep();
  std::size_t text_ = 0;  ///< index of the text that is being read
  int before_ = 0;        ///< tokens of the texts that have been read
  std::optional<PromptReading> reading_;
  bool has_passed_ = false;  ///< the text has passed through all layers
  int pooled_ = 0;           ///< rows of the text that are pooled
  std::optional<PooledRows> rows_;
  std::optional<Cache> cache_;
};

}  // namespace winnow::engine
