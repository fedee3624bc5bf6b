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

/// How the cache of a question over documents is kept. Throws UsageError for options that do not go together.
CacheOptions cache_of(const AskOptions& options);

/// A question over documents that is worked on by quanta: a layer, or some tokens of the question.
class Asking {
 public:
  /// Throws InputError for no documents and an empty question, UsageError for options that do not go together and for
  /// a method that cannot work on compressed documents.
  Asking(std::vector<std::shared_ptr<const Document>> documents, std::vector<Token> question,
         const AskOptions& options);

  /// Of the documents and the question.
  int tokens() const;
  /// How the cache is kept.
  const CacheOptions& cache() const { return cache_; }
  /// The most bytes that are in use until take(), and those of the cache, at most.
  std::size_t bytes(const Session::Impl& session) const;
  std::size_t cache_bytes(const Session::Impl& session) const;

  /// Throws InputError for a document of another model, MemoryError. The session outlives it.
  void begin(Session::Impl& session);
  /// Returns false when the cache is there. Throws UnreadableError, MemoryError, Interrupted.
  bool advance();
  /// Roughly, the share that is done.
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
  std::optional<Steps> steps_;  ///< use all the rest
  int steps_done_ = 0;
};

}  // namespace winnow::documents
