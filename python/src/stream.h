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

/// The next token of an answer, and the bytes that have become sure with it.
struct Piece {
  int answer = 0;
  std::optional<GeneratedToken> token;  ///< none: bytes that were held back, as a stop text might have begun
  std::string bytes;
};

/// Answers that are generated together, one from each cache, as somebody asks for them. It has the caches and the
/// session until it has ended.
class Stream {
 public:
  /// Adds the question's tokens to each cache, where there is one. Throws what Scheduler::add() throws, and UsageError
  /// where a cache has nothing to answer from; the caches are then as they were.
  Stream(std::vector<CachePointer> caches, const std::optional<std::string>& question, const GenerateOptions& options);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// Nothing: all answers have ended. Throws the error that has ended one.
  std::optional<Piece> next();
  /// Ends all answers with what there is.
  void close();
  /// [cache] What has been generated, when the stream has ended.
  const std::vector<Generation>& answers() const { return answers_; }

 private:
  void add(std::size_t index, const std::optional<std::string>& question, const GenerateOptions& options);
  void end(std::size_t index, RequestEnd end);
  void cancel_all();
  void advance();

  std::shared_ptr<SessionState> session_;
  std::vector<CachePointer> caches_;
  std::optional<Scheduler> scheduler_;  ///< empty: all has ended
  std::vector<Scheduler::Id> ids_;
  std::vector<Generation> answers_;
  std::vector<std::size_t> sent_;  ///< bytes of each answer
  std::deque<Piece> pieces_;
  std::exception_ptr error_;
};

}  // namespace winnow::python
