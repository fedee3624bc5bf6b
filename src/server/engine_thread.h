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

/// The end of a prompt and its answers.
struct PromptEnd {
  std::vector<Generation> answers;              ///< complete, or up to the end of the request
  std::vector<GeneratedToken> prompt_logprobs;  ///< of the prompt's tokens from the second on, if requested
  int cached_tokens = 0;                        ///< tokens of the prompt that were not read because they were stored
  int max_tokens = 0;                           ///< longest answer that the memory holds
  std::exception_ptr error;                     ///< null: no error
  double queue_ms = 0;
  double read_ms = 0;
  double answer_ms = 0;
};

/// Receives the events of the prompts of one HTTP request, by their index. Called in the HTTP thread.
class AnswerListener {
 public:
  AnswerListener() = default;
  AnswerListener(const AnswerListener&) = delete;
  AnswerListener& operator=(const AnswerListener&) = delete;
  virtual ~AnswerListener() = default;

  /// All prompts are queued. If one cannot be, refused() is called instead, and nothing else.
  virtual void accepted() = 0;
  virtual void refused(std::exception_ptr why) = 0;
  /// A text has been read and compressed. `kept` is null for all prompts but the first, and for methods without a
  /// budget.
  virtual void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) = 0;
  virtual void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) = 0;
  virtual void ended(std::size_t prompt, PromptEnd end) = 0;
  /// In place of ended() after cancel(): no client waits for the end. Implementations may record it.
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

/// The server is shutting down.
class ShuttingDown : public Error {
 public:
  ShuttingDown() : Error("the server is shutting down: try again later") {}
};

/// The state of a prompt, with the server's facts about it.
struct EngineState {
  RequestState state;
  std::string request;  ///< the id that the client knows
  std::string spec;
  std::string budget;  ///< empty: none
  int max_tokens = 0;  ///< longest answer
};

/// State and counters of the engine.
struct EngineLoad {
  std::vector<EngineState> states;
  std::size_t promised = 0;  ///< bytes
  PrefixUse prefixes;
  TextUse texts;
  double longest_quantum_ms = 0;  ///< Scheduler::longest_quantum_ms()
};

struct EngineLimits {
  SchedulerOptions scheduler;
  int waiting = 64;                           ///< most prompts that may wait besides those that are read or answered
  std::optional<std::size_t> waiting_tokens;  ///< most tokens of all waiting prompts together; none: no limit
  /// Bytes for requests' own data, besides the scheduler's memory.
  std::size_t request_memory = std::numeric_limits<std::size_t>::max();
};

/// The thread that owns the session and the scheduler. Its functions may be called by any thread.
class EngineThread {
 public:
  using Ticket = std::uint64_t;

  /// Throws UsageError for invalid options. Listeners are called through `to_http`.
  EngineThread(std::shared_ptr<const Model> model, const SessionOptions& session, const EngineLimits& limits,
               Post to_http);
  /// Ends all requests at once.
  ~EngineThread();

  /// A new identifier for one HTTP request.
  Ticket new_ticket();
  /// Adds requests under the id that their client knows. Replaces the requests' events.
  void add(Ticket ticket, std::vector<Request> requests, std::string id, std::shared_ptr<AnswerListener> listener);
  /// Ends the remaining prompts; from then on, the listener only gets their cancelled() events.
  void cancel(Ticket ticket);

  /// Wakes the scheduler: something that a request waits for has happened.
  void wake();

  /// Refuses new requests from now on.
  void close();
  /// Ends all requests with ShuttingDown.
  void end_all();
  /// Tells the thread to stop, without waiting.
  void request_stop();
  /// Stops the thread; listeners get no more events.
  void stop();

  /// The state after the last step.
  EngineLoad load() const;
  std::vector<EngineState> states() const { return load().states; }
  int threads() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::server
