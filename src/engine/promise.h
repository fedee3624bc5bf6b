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

/// Rows of a text whose logits are computed together.
inline constexpr int kScoredRows = 64;

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
  /// Bytes of the cache after the text and `more` tokens.
  std::size_t kept(const Session::Impl& session, int more) const;
  /// Size of the cache, as the past of later tokens.
  PastSize past(const Session::Impl& session) const;

 private:
  void add(Stage stage, const Session::Impl& session);
  /// Plans a part. Returns the bytes that reading it takes besides the lanes of earlier parts.
  std::size_t plan(Part& part, const Session::Impl& session) const;

  CacheOptions options_;  ///< of the first stage
  std::vector<Part> parts_;
  int tokens_ = 0;
  std::size_t lanes_ = 0;  ///< bytes of the compressed stages
  int appended_ = 0;       ///< tokens of the appended stages
  std::size_t rows_ = 0;   ///< entries of a layer, all heads together
  std::size_t reading_ = 0;
};

/// The most bytes that a request has in use.
struct Promise {
  std::size_t reading = 0;    ///< while its text is being read
  std::size_t answering = 0;  ///< afterwards

  std::size_t most() const { return std::max(reading, answering); }
};

/// Bytes that a request takes once its cache exists.
std::size_t answering_bytes(const Request& request, const Sequence& cache, const Session::Impl& session);

/// Plan of a request: how its text is read, and its promise.
struct RequestPlan {
  /// Throws UsageError if the budget is too small for the method.
  RequestPlan(const Request& request, const Session::Impl& session);
  /// The promise for the same request with another number of tokens to generate.
  Promise promise_for(const Request& request, const Session::Impl& session) const;

  std::optional<TextPlan> text;  ///< nullopt if the request brings a cache or a source of one
  Promise promise;
};

}  // namespace winnow::engine
