// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "documents/ask_method.h"
#include "documents/joint.h"
#include "documents/steps.h"
#include "winnow/ask.h"

namespace winnow::documents {

/// Options of the cache for a question over documents. Throws UsageError for contradictory options.
CacheOptions cache_of(const AskOptions& options);

/// Processes a question over documents by quanta: a layer, or some tokens of the question.
class Asking {
 public:
  /// Throws InputError for no documents or an empty question, UsageError for contradictory options and for a method
  /// that cannot use compressed documents.
  Asking(std::vector<std::shared_ptr<const Document>> documents, std::vector<Token> question,
         const AskOptions& options);

  /// Number of tokens of the documents and the question.
  int tokens() const;
  /// Options of the cache.
  const CacheOptions& cache() const { return cache_; }
  /// The most bytes in use until take(), and an upper bound of the cache's bytes.
  std::size_t bytes(const Session::Impl& session) const;
  std::size_t cache_bytes(const Session::Impl& session) const;

  /// Throws InputError for a document of another model, MemoryError. The session outlives it.
  void begin(Session::Impl& session);
  /// Returns false when the cache is complete. Throws UnreadableError, MemoryError, Interrupted.
  bool advance();
  /// Approximate fraction that is done.
  double done() const;
  /// REQUIRES: advance() has returned false.
  Asked take() { return std::move(asked_); }

 private:
  /// Bytes of one layer's rows of the documents and the question.
  std::size_t scratch_bytes(const Session::Impl& session) const;

  std::vector<std::shared_ptr<const Document>> documents_;
  std::vector<Token> question_;
  AskOptions options_;
  CacheOptions cache_;
  Asked asked_;
  std::optional<Joint> joint_;
  std::optional<AskContext> context_;
  std::optional<Steps> steps_;  ///< declared last: refers to the members above
  int steps_done_ = 0;
};

}  // namespace winnow::documents
