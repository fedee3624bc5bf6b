// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/kept/positions.h"
#include "server/post.h"
#include "winnow/error.h"
#include "winnow/generate.h"
#include "winnow/scheduler.h"

namespace winnow::server {

/// How a prompt and its answers have ended.
struct PromptEnd {
  std::vector<Generation> answers;              ///< as far as they have come
  std::vector<GeneratedToken> prompt_logprobs;  ///< of the prompt's tokens from the second on, where asked for
  int cached_tokens = 0;                        ///< of the prompt, that were not read because they were stored
  int max_tokens = 0;                           ///< of each answer, as far as the memory holds them
  std::exception_ptr error;                     ///< null: none
  double queue_ms = 0;
  double read_ms = 0;
  double answer_ms = 0;
};

/// Hears of the prompts that one HTTP request has asked for, by their index. Called in the thread for HTTP.
class AnswerListener {
 public:
  AnswerListener() = default;
  AnswerListener(const AnswerListener&) = delete;
  AnswerListener& operator=(const AnswerListener&) = delete;
  virtual ~AnswerListener() = default;

  /// All prompts wait for their turn, or none does: then nothing else is called.
  virtual void accepted() = 0;
  virtual void refused(std::exception_ptr why) = 0;
  /// A text has been read and compressed. The positions are those of the first prompt; null for the others, and where
  /// the method has no budget.
  virtual void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) = 0;
  virtual void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) = 0;
  virtual void ended(std::size_t prompt, PromptEnd end) = 0;
  /// The same, after cancel(): nobody waits for it any more. Those who override it may keep the end.
  virtual void cancelled(std::size_t /*prompt*/, PromptEnd /*end*/) {}  // NOLINT(performance-unnecessary-value-param)
};

/// Too many requests wait.
class QueueFull : public Error {
 public:
  QueueFull(const std::string& what, int retry_after) : Error(what), retry_after_(retry_after) {}
  /// Seconds, 1 to 120.
  int retry_after() const { return retry_after_; }

 private:
  int retry_after_;
};

/// The server ends.
class ShuttingDown : public Error {
 public:
  ShuttingDown() : Error("the server is shutting down: try again later") {}
};

/// A prompt as it is now, with what the scheduler does not know of it.
struct EngineState {
  RequestState state;
  std::string request;  ///< the id that its client knows
  std::string spec;
  std::string budget;  ///< empty: none
  int max_tokens = 0;  ///< of each answer
};

/// State and counters of the engine.
struct EngineLoad {
  std::vector<EngineState> states;
  std::size_t promised = 0;  ///< bytes
  PrefixUse prefixes;
  double longest_quantum_ms = 0;  ///< Scheduler::longest_quantum_ms()
};

struct EngineLimits {
  SchedulerOptions scheduler;
  int waiting = 64;                           ///< prompts that may wait besides those that are read or answered
  std::optional<std::size_t> waiting_tokens;  ///< that prompts which wait may have together; none: any number
  /// Bytes of what requests bring, besides those of the scheduler.
  std::size_t request_memory = std::numeric_limits<std::size_t>::max();
};

/// The thread that owns the session and the scheduler. Its functions may be called by any thread.
class EngineThread {
 public:
  using Ticket = std::uint64_t;

  /// Throws UsageError for options that cannot be. Listeners are called through `to_http`.
  EngineThread(std::shared_ptr<const Model> model, const SessionOptions& session, const EngineLimits& limits,
               Post to_http);
  /// Ends at once whatever still runs.
  ~EngineThread();

  /// A new name for what one HTTP request asks for.
  Ticket new_ticket();
  /// Adds requests under the id that their client knows. Events that the requests bring are replaced.
  void add(Ticket ticket, std::vector<Request> requests, std::string id, std::shared_ptr<AnswerListener> listener);
  /// Drops what is left of it; its listener hears only of the ends of its prompts.
  void cancel(Ticket ticket);

  /// Tells that something happened for which a request waits.
  void wake();

  /// Requests that come from now on are refused.
  void close();
  /// Ends all requests, which hear of ShuttingDown.
  void end_all();
  /// Has the thread end what it does, and does not wait for it.
  void request_stop();
  /// Ends the thread; listeners hear nothing any more.
  void stop();

  /// As it was after the last step.
  EngineLoad load() const;
  std::vector<EngineState> states() const { return load().states; }
  int threads() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::server
