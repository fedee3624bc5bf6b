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

/// A text in stages: how each is read, and how many bytes that takes.
class TextPlan {
 public:
  struct Part {
    Stage stage;
    std::optional<ReadingPlan> reading;  ///< none: its tokens are appended to those before
  };

  /// Throws UsageError when the budget is too small for the method. REQUIRES: a request with a text.
  TextPlan(const Request& request, const Session::Impl& session);

  const std::vector<Part>& parts() const { return parts_; }
  /// The most that reading takes.
  std::size_t reading() const { return reading_; }
  /// Bytes of what is kept, when `more` tokens have come after the text.
  std::size_t kept(const Session::Impl& session, int more) const;
  /// Size of what is kept.
  PastSize past(const Session::Impl& session) const;

 private:
  void add(Stage stage, const Session::Impl& session);
  /// Plans a part, and returns what reading it takes besides the lanes of those before it.
  std::size_t plan(Part& part, const Session::Impl& session) const;

  CacheOptions options_;  ///< of the first stage
  std::vector<Part> parts_;
  int tokens_ = 0;
  std::size_t lanes_ = 0;  ///< bytes of the stages that are compressed
  int appended_ = 0;       ///< tokens of the others
  std::size_t rows_ = 0;   ///< of a layer, all heads together
  std::size_t reading_ = 0;
};

/// The most bytes that a request has in use.
struct Promise {
  std::size_t reading = 0;    ///< while its text is read
  std::size_t answering = 0;  ///< from then on

  std::size_t most() const { return std::max(reading, answering); }
};

/// Bytes that a request takes when its cache is there.
std::size_t answering_bytes(const Request& request, const Sequence& cache, const Session::Impl& session);

/// How a request is read, and what it is promised.
struct RequestPlan {
  /// Throws UsageError when the budget is too small for the method.
  RequestPlan(const Request& request, const Session::Impl& session);
  /// The same for a request that differs by the number of tokens that it generates.
  Promise promise_for(const Request& request, const Session::Impl& session) const;

  std::optional<TextPlan> text;  ///< none where a request goes on after a cache, or something else makes its cache
  Promise promise;
};

}  // namespace winnow::engine
