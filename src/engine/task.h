// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/answering.h"
#include "engine/cache_source.h"
#include "engine/extension.h"
#include "engine/lane_attention.h"
#include "engine/prefixes.h"
#include "engine/promise.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "engine/text_reading.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// What the tasks of a scheduler share; it outlives them.
struct TaskRoom {
  Session::Impl& session;
  Sampler::Candidates candidates;
  Prefixes prefixes;
  double read_ms = 1;         ///< that reading has taken so far …
  double read_tokens = 1;     ///< … and of how many tokens
  network::Pass packed = {};  ///< keeps the memory for packed weights, once a text has needed it
};

/// A request of a scheduler on its way: it waits, is read by quanta, is answered token by token, ends.
class Task {
 public:
  Task(Scheduler::Id id, Request request, RequestPlan plan, TaskRoom& room);

  /// Null: it has a cache of its own, or another source of one.
  const TextReading* text() const { return text_ ? &*text_ : nullptr; }
  std::size_t text_tokens() const { return request_.text.size(); }

  Scheduler::Id id() const { return id_; }
  /// Bytes that it may have in use from now on.
  std::size_t promise() const;
  bool has_begun() const { return begun_.has_value(); }
  /// All of its answers have begun.
  bool is_read() const { return begun_answers_ == request_.answers; }
  bool is_answering() const { return is_read() && !ended_; }
  /// Its text has to be read, or is being read; what another source does counts as reading.
  bool needs_text() const;
  /// Its text is being read.
  bool is_reading_text() const { return has_begun() && needs_text() && !is_waiting() && !ended_; }
  /// There is nothing to do until something outside has happened.
  bool is_waiting() const { return has_begun() && !ended_ && request_.source && request_.source->is_waiting(); }
  /// It is to be ended: there is nothing left to do, it was cancelled, or it has met an error.
  bool has_ended() const { return ended_; }
  RequestState state() const;
  /// Tokens that have still to be read; one that has passed half of the layers is half a token.
  double tokens_to_read() const;
  /// When it would have been read if nothing else had been. Prompts are read in this order: short ones before long
  /// ones, but none waits for what came long after it.
  Clock::time_point due() const;
  const std::string& key() const { return request_.key; }
  int priority() const { return request_.priority; }

  /// begin(), read() and take() end the task when they meet an error. They throw Interrupted only.
  void begin();
  /// Reads one chunk through one layer, or some tokens of the question. When all has been read, copies one layer of the
  /// cache for another answer. When each has its cache, the answers begin, as many as their grammar has time for.
  void read();
  /// Adds a row for each answer that goes on.
  void add_rows(std::vector<StepRow>& rows);
  /// Takes the logits of those rows, [rows][n_vocab], and chooses next tokens, as many as the grammar has time for.
  /// Answers that have to wait for their token have no row until they have it.
  void take(std::span<const float> logits);

  void cancel() { ended_ = true; }
  void fail(std::exception_ptr error);
  /// Tells that it has ended. REQUIRES: nobody uses the task afterwards.
  void finish();

 private:
  template <class Work>
  void guarded(const Work& work);
  void read_text();
  void read_source();
  void has_text(Cache cache, std::vector<float> logits);
  void read_question();
  void prompt_is_read();
  void begin_answers();
  void copy_layer();
  /// The answers that wait neither for their end nor for their next token.
  std::vector<std::size_t> stepping() const;
  /// Chooses tokens until the grammar has taken its time. Returns how many answers have theirs.
  std::size_t choose(std::span<const std::size_t> answers, std::span<const float> logits);
  void choose(std::size_t answer, std::span<const float> logits);
  void hold(std::span<const std::size_t> answers, std::span<const float> logits);

  Scheduler::Id id_;
  Request request_;
  RequestPlan plan_;
  TaskRoom& room_;
  int prompt_tokens_;
  std::optional<TextReading> text_;
  Clock::time_point arrived_ = Clock::now();
  std::optional<Clock::time_point> begun_;
  std::optional<Clock::time_point> answered_;  ///< when the first token came
  bool has_asked_ = false;                     ///< the question has been read
  std::vector<Cache> caches_;
  std::optional<SequenceCopy> copy_;   ///< of the first cache, for the next answer
  std::optional<Extension> question_;  ///< while it is being read
  std::vector<float> logits_;          ///< of the last token that has been read
  std::vector<Answering> answers_;
  int begun_answers_ = 0;           ///< that have chosen their first token
  std::vector<std::size_t> held_;   ///< answers whose next token is to be chosen …
  std::vector<float> held_logits_;  ///< … from these, [held_][n_vocab]
  bool ended_ = false;
  std::exception_ptr error_;
};

}  // namespace winnow::engine
