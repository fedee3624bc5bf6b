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
#include "engine/kept_texts.h"
#include "engine/lane_attention.h"
#include "engine/prefixes.h"
#include "engine/promise.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "engine/text_reading.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// State shared by the tasks of a scheduler; outlives them.
struct TaskRoom {
  Session::Impl& session;
  Sampler::Candidates candidates;
  KeptTexts texts;
  Prefixes prefixes;          ///< in the memory of `texts`
  double read_ms = 1;         ///< total time of reading so far
  double read_tokens = 1;     ///< tokens read in read_ms
  network::Pass packed = {};  ///< keeps the memory for packed weights after its first use
};

/// A request in a scheduler: it waits, is read by quanta, is answered token by token, and ends.
class Task {
 public:
  Task(Scheduler::Id id, Request request, RequestPlan plan, TaskRoom& room);

  /// Null if the request brings a cache or a source of one.
  const TextReading* text() const { return text_ ? &*text_ : nullptr; }
  /// REQUIRES: text().
  std::size_t text_tokens() const { return request_.text().tokens.size(); }

  Scheduler::Id id() const { return id_; }
  /// Bytes that it may have in use now: for its reading, its question and the promised portions of its answers.
  std::size_t promise() const { return with_reading(promise_.bytes()); }
  /// Its promise with another portion.
  std::size_t next_promise() const { return with_reading(promise_.next_bytes()); }
  /// The most bytes that it can have in use from now on.
  std::size_t most() const { return with_reading(promise_.most_bytes()); }
  bool has_begun() const { return begun_.has_value(); }
  /// True if all of its answers have begun.
  bool is_read() const { return begun_answers_ == request_.answers; }
  /// True if an answer can go on.
  bool is_answering() const { return is_read() && !ended_ && !is_paused(); }
  /// True if an answer has used up what was promised.
  bool needs_portion() const;
  /// True if each answer that has not ended needs a portion.
  bool is_paused() const;
  /// True until its text has been read, or until a CacheSource has made its cache.
  bool needs_text() const;
  /// True if its text is being read.
  bool is_reading_text() const { return has_begun() && needs_text() && !is_waiting() && !ended_; }
  /// True if its CacheSource waits for another thread.
  bool is_waiting() const { return has_begun() && !ended_ && source() != nullptr && source()->is_waiting(); }
  /// True if nothing is left to do, it was cancelled, or it has failed.
  bool has_ended() const { return ended_; }
  RequestState state() const;
  /// Number of tokens left to read; a token that has passed half of the layers counts as half.
  double tokens_to_read() const;
  /// Time at which the prompt would have been read without other requests. Prompts are read in this order: short before
  /// long ones, but none waits for a prompt that arrived much later.
  Clock::time_point due() const;
  const std::string& key() const { return request_.key; }
  int priority() const { return request_.priority; }

  /// True if fetch() has nothing to do: the stored parts of its text are in memory or are being fetched.
  bool has_fetched() const { return !text_ || text_->has_fetched(); }
  /// Begins to bring stored parts of its text into memory. Ends the task on an error.
  void fetch();
  /// True while it waits for them and cannot begin.
  bool is_fetching() { return text_ && !has_begun() && !ended_ && text_->is_fetching(); }
  /// Promises another portion. REQUIRES: needs_portion().
  void grow_promise() { promise_.grow(); }

  /// begin(), read() and take() end the task on an error. They throw Interrupted only.
  void begin();
  /// Reads one chunk through one layer, or some tokens of the question. After reading, copies one layer of the cache
  /// for another answer. When each answer has its cache, begins answers until Grammar::kMostSteps is reached.
  void read();
  /// Adds a row for each answer that continues.
  void add_rows(std::vector<StepRow>& rows);
  /// Takes the logits of those rows, [rows][n_vocab], and chooses next tokens until Grammar::kMostSteps is reached. The
  /// other answers get no row until later calls have chosen their tokens.
  void take(std::span<const float> logits);

  void cancel() { ended_ = true; }
  void fail(std::exception_ptr error);
  /// Calls on_end(). REQUIRES: the task is not used afterwards.
  void finish();

 private:
  template <class Work>
  void guarded(const Work& work);
  /// Bytes while its text is read if these are its answers' bytes.
  std::size_t with_reading(std::size_t answers) const;
  /// Null if the request has no source, or its cache has been taken.
  CacheSource* source() const;
  void read_text();
  void read_source();
  void has_text(Cache cache, std::vector<float> logits);
  void read_question();
  void prompt_is_read();
  void begin_answers();
  void copy_layer();
  bool is_used_up(std::size_t answer) const;
  /// Answers that have their next token, and may have another one.
  std::vector<std::size_t> stepping() const;
  /// Chooses tokens until Grammar::kMostSteps is reached. Returns the number of answers that got one.
  std::size_t choose(std::span<const std::size_t> answers, std::span<const float> logits);
  void choose(std::size_t answer, std::span<const float> logits);
  void hold(std::span<const std::size_t> answers, std::span<const float> logits);

  Scheduler::Id id_;
  Request request_;
  RequestPlan plan_;
  TaskRoom& room_;
  AnswerPromise promise_;
  int prompt_tokens_;
  std::optional<TextReading> text_;
  Clock::time_point arrived_ = Clock::now();
  std::optional<Clock::time_point> begun_;
  std::optional<Clock::time_point> answered_;  ///< time of the first token
  bool has_asked_ = false;                     ///< the question has been read
  std::vector<Cache> caches_;
  std::optional<SequenceCopy> copy_;   ///< copy of the first cache for the next answer
  std::optional<Extension> question_;  ///< set while the question is being read
  std::vector<float> logits_;          ///< of the last token read
  std::vector<Answering> answers_;
  int begun_answers_ = 0;           ///< answers that have chosen their first token
  std::vector<std::size_t> held_;   ///< indices of answers that wait for their next token
  std::vector<float> held_logits_;  ///< logits for these tokens, [held_][n_vocab]
  bool ended_ = false;
  std::exception_ptr error_;
};

}  // namespace winnow::engine
