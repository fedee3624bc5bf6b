// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session_cache.h"
#include "winnow/scheduler.h"

namespace winnow::python {

/// The next token of an answer, and the bytes that can be sent with it.
struct Delta {
  int answer = 0;
  std::optional<GeneratedToken> token;  ///< nullopt: the rest of held back bytes, at the end of an answer
  std::string bytes;
};

/// Generates answers together, one from each cache, as the caller asks for tokens. It holds the caches and the session
/// until it has ended.
class Stream {
 public:
  /// Adds the question's tokens, if there are any, to each cache. Throws the errors of Scheduler::add(), and UsageError
  /// if a cache has nothing to answer from; the caches are then unchanged.
  Stream(std::vector<CachePointer> caches, const std::optional<std::string>& question, const GenerateOptions& options);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// The next token, or nullopt when all answers have ended. Throws the error that ended one.
  std::optional<Delta> next();
  /// Ends all answers early.
  void close();
  /// Generated answers, [cache]. REQUIRES: the stream has ended.
  const std::vector<Generation>& answers() const { return answers_; }

 private:
  void add(std::size_t index, const std::optional<std::string>& question, const GenerateOptions& options);
  void end(std::size_t index, RequestEnd end);
  void cancel_all();
  void advance();

  std::shared_ptr<SessionState> session_;
  std::vector<CachePointer> caches_;
  std::optional<Scheduler> scheduler_;  ///< empty when all answers have ended
  std::vector<Scheduler::Id> ids_;
  std::vector<Generation> answers_;
  std::vector<std::size_t> sent_;  ///< bytes of each answer that were sent
  std::deque<Delta> deltas_;
  std::exception_ptr error_;
};

}  // namespace winnow::python
