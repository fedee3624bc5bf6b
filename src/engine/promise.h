// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "engine/reading_plan.h"
#include "engine/session_impl.h"
#include "engine/stages.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// Tokens of an answer whose memory is promised together. An answer that waits for memory holds its cache meanwhile,
/// which argues against smaller portions; a request that ends at once has been promised a whole one, which argues
/// against larger ones. A multiple of LaneStorage::kTailBlock, because lanes grow by such blocks.
inline constexpr int kPortion = 256;

/// Rows of a text whose logits are computed together.
inline constexpr int kScoredRows = 64;

/// Size of a cache to which tokens are appended.
struct CacheSize {
  CacheOptions keep;
  std::size_t bytes = 0;  ///< before tokens are appended
  int tokens = 0;         ///< seen before that; of the first stage, if there are several
  int appended = 0;       ///< tokens that are appended in any case

  /// Bytes after `more` further tokens.
  std::size_t grown(const Session::Impl& session, int more) const;
};

/// Plan for a text in stages: how each stage is read, and how many bytes that takes.
class TextPlan {
 public:
  struct Part {
    Stage stage;
    std::optional<ReadingPlan> reading;  ///< nullopt: its tokens are only appended
  };

  /// Throws UsageError if the budget is too small for the method. REQUIRES: a request with a text.
  TextPlan(const Request& request, const Session::Impl& session);

  const std::vector<Part>& parts() const { return parts_; }
  /// The most bytes that reading takes.
  std::size_t reading() const { return reading_; }
  /// Size of the cache after the text.
  const CacheSize& cache() const { return cache_; }
  /// Size of the cache, as the past of later tokens.
  PastSize past(const Session::Impl& session) const;

 private:
  void add(Stage stage, const Session::Impl& session);
  /// Plans a part. Returns the bytes that reading it takes besides the lanes of earlier parts.
  std::size_t plan(Part& part, const Session::Impl& session) const;

  CacheSize cache_;  ///< its options are those of the first stage
  std::vector<Part> parts_;
  int tokens_ = 0;
  std::size_t rows_ = 0;  ///< entries of a layer, all heads together
  std::size_t reading_ = 0;
};

/// Plan for a request's answers: how many bytes they take with any number of tokens, with the question before them.
class AnswerPlan {
 public:
  /// `cache`: before the question. `asking`: additional bytes while the question is read, once for all answers.
  AnswerPlan(const Request& request, CacheSize cache, std::size_t asking);

  /// The most bytes if no answer has more than `tokens` tokens.
  std::size_t bytes(const Session::Impl& session, int tokens) const;

 private:
  CacheSize cache_;
  std::size_t asking_;
  int answers_;
  int logits_rows_;   ///< of an answer
  int alternatives_;  ///< log probabilities of a token; 0: none
};

/// Plan for the answers to a request whose cache exists.
AnswerPlan answer_plan(const Request& request, const Sequence& cache, const Session::Impl& session);

/// Memory that is promised to a request's answers, by portions.
class AnswerPromise {
 public:
  /// Promises the first portion. The session outlives it.
  AnswerPromise(const AnswerPlan& plan, int most_tokens, const Session::Impl& session);

  /// Number of tokens that each answer may have.
  int tokens() const { return tokens_; }
  std::size_t bytes() const { return bytes_; }
  /// Bytes with the next portion.
  std::size_t next_bytes() const { return next_bytes_; }
  /// Bytes of the longest answers.
  std::size_t most_bytes() const { return most_bytes_; }
  /// Promises the next portion.
  void grow();

 private:
  int with_portion(int tokens) const { return tokens + std::min(kPortion, most_tokens_ - tokens); }

  const Session::Impl* session_;
  AnswerPlan plan_;
  int most_tokens_;
  int tokens_;
  std::size_t bytes_;
  std::size_t next_bytes_;
  std::size_t most_bytes_;
};

/// Plan of a request: how its text is read, and how many bytes that and its answers take.
struct RequestPlan {
  /// Throws UsageError if the budget is too small for the method.
  RequestPlan(const Request& request, const Session::Impl& session);
  /// The most bytes that the request has in use if no answer has more than `tokens` tokens.
  std::size_t bytes(const Session::Impl& session, int tokens) const;

  std::optional<TextPlan> text;  ///< nullopt if the request brings a cache or a source of one
  std::size_t reading;           ///< the most bytes while its text or source is read
  AnswerPlan answers;
};

}  // namespace winnow::engine
