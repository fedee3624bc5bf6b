// SPDX-License-Identifier: Apache-2.0
#include "engine/task.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "engine/layers.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

}  // namespace

Task::Task(Scheduler::Id id, Request request, const Promise& promise, TaskRoom& room)
    : id_(id),
      request_(std::move(request)),
      promise_(promise),
      room_(room),
      prompt_tokens_((request_.cache ? request_.cache->impl().seen : 0) +
                     static_cast<int>(request_.text.size() + request_.question.size())) {
  if (request_.cache_salt && !request_.cache && !request_.prompt_logprobs && room_.prefixes.has_room(stored_bytes()))
    prefix_ = prefix_key(request_.keep, *request_.cache_salt, request_.text);
}

/// Of its text, when that is stored.
std::size_t Task::stored_bytes() const {
  const auto& hparams = room_.session.hparams;
  const auto tokens = request_.text.size();
  return cache_bytes(request_.keep, hparams, static_cast<int>(tokens)) + tokens * sizeof(Token) +
         as_size(hparams.n_vocab) * sizeof(float);
}

bool Task::needs_text() const {
  if (has_begun()) return prefill_.has_value();
  return !request_.cache && !(prefix_ && room_.prefixes.has(*prefix_));
}

std::size_t Task::promise() const { return needs_text() ? promise_.most() : promise_.answering; }

double Task::tokens_to_read() const {
  const double text = prefill_ ? 1 - prefill_->done() : needs_text() ? 1 : 0;
  return text * static_cast<double>(request_.text.size()) + static_cast<double>(request_.question.size() - asked_);
}

Clock::time_point Task::due() const {
  const std::chrono::duration<double, std::milli> needs(tokens_to_read() * room_.read_ms / room_.read_tokens);
  return arrived_ + std::chrono::duration_cast<Clock::duration>(needs);
}

RequestState Task::state() const {
  RequestState out;
  out.id = id_;
  if (has_begun()) out.phase = answers_.empty() ? RequestState::Phase::reading : RequestState::Phase::answering;
  const std::size_t all = request_.text.size() + request_.question.size();
  out.prompt_tokens = prompt_tokens_;
  out.read = all == 0 ? 1 : 1 - tokens_to_read() / static_cast<double>(all);
  for (const auto& answer : answers_) out.generated += answer.generated();
  out.bytes_promised = promise();
  for (const auto& cache : caches_) out.bytes_held += cache.impl().bytes_held();
  return out;
}

template <class Work>
void Task::guarded(const Work& work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    fail(std::current_exception());
  }
}

void Task::fail(std::exception_ptr error) {
  error_ = std::move(error);
  ended_ = true;
}

void Task::begin() {
  guarded([this] {
    begun_ = Clock::now();
    if (!request_.cache) return begin_text();
    caches_.push_back(std::move(*request_.cache));
    logits_ = std::move(request_.logits);
    if (request_.question.empty()) begin_answers();
  });
}

void Task::begin_text() {
  if (find_text()) return;
  check_memory(promise_.reading, fmt::format("reading {} tokens", request_.text.size()));
  static const std::vector<std::vector<Token>> nothing_more(1);
  auto pass = room_.session.begin_pass(request_.text.size(), promise_.reading);
  prefill_.emplace(room_.session.prefill_context(std::move(pass)), request_.text, nothing_more,
                   std::span(&request_.keep, 1));
}

/// Whether the text is stored.
bool Task::find_text() {
  const auto* const found = prefix_ ? room_.prefixes.find(*prefix_) : nullptr;
  if (found == nullptr) return false;
  caches_.push_back(found->cache.clone());
  logits_ = found->logits;
  cached_tokens_ = static_cast<int>(request_.text.size());
  has_text();
  return true;
}

void Task::has_text() {
  if (request_.events.on_text) request_.events.on_text(caches_.front(), logits_);
  if (request_.question.empty() && !ended_) begin_answers();
}

void Task::read() {
  const auto began = Clock::now();
  const double before = tokens_to_read();
  guarded([this] {
    if (prefill_) return read_text();
    read_question();
    if (asked_ == request_.question.size()) begin_answers();
  });
  room_.read_ms += ms_since(began);
  room_.read_tokens += before - tokens_to_read();
}

void Task::read_text() {
  if (!has_passed_) {
    const Session::Impl::Stops stops(room_.session);
    has_passed_ = !prefill_->advance();
    if (!has_passed_ || request_.prompt_logprobs) return;
  }
  if (request_.prompt_logprobs && score_text()) return;
  caches_ = prefill_->take_caches(0);
  logits_ = prefill_->logits(0);
  prefill_.reset();
  if (prefix_) room_.prefixes.put(*prefix_, caches_.front(), logits_);
  has_text();
}

/// The log probabilities of some more tokens of the text. Returns false when it has those of all.
bool Task::score_text() {
  const std::size_t all = request_.text.size() - 1;
  const std::size_t count = std::min(all - scored_.size(), as_size(kScoredRows));
  const auto vocabulary = as_size(room_.session.hparams.n_vocab);
  if (count == 0) return false;
  Buffer logits(room_.session.account, count * vocabulary * sizeof(float), "the logits of a prompt's tokens");
  prefill_->text_logits({static_cast<int>(scored_.size()), static_cast<int>(count)}, logits.as<float>());
  for (std::size_t i = 0; i < count; ++i) {
    const Token next = request_.text[scored_.size() + 1];
    scored_.push_back(
        log_probabilities(logits.as<float>().subspan(i * vocabulary, vocabulary), next, *request_.prompt_logprobs));
  }
  return scored_.size() < all;
}

void Task::read_question() {
  logits_.resize(as_size(room_.session.hparams.n_vocab));
  const auto rest = std::span<const Token>(request_.question).subspan(asked_);
  asked_ += room_.session.extend(caches_.front().impl(), rest, logits_);
}

void Task::begin_answers() {
  if (request_.events.on_prompt) request_.events.on_prompt(caches_.front(), logits_);
  if (ended_) return;
  for (int i = 1; i < request_.answers; ++i) caches_.push_back(caches_.front().clone());
  for (int i = 0; i < request_.answers; ++i) answers_.emplace_back(*room_.session.model, request_.generate, i);
  for (int i = 0; i < request_.answers; ++i) take(as_size(i), logits_);
  logits_ = {};
  answered_ = Clock::now();
}

void Task::take(std::size_t answer, std::span<const float> logits) {
  if (ended_) return;
  if (!answers_[answer].has_ended()) {
    const auto* const next = answers_[answer].take(logits, room_.candidates);
    if (next != nullptr && request_.events.on_token)
      request_.events.on_token(static_cast<int>(answer), next->token, next->bytes);
  }
  ended_ = ended_ || std::all_of(answers_.begin(), answers_.end(), [](const auto& a) { return a.has_ended(); });
}

void Task::add_rows(std::vector<StepRow>& rows) {
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    auto& sequence = caches_[i].impl();
    if (!answers_[i].has_ended()) rows.push_back({&sequence, answers_[i].last(), sequence.seen});
  }
}

void Task::take(std::span<const float> logits) {
  if (ended_) return;
  guarded([&] {
    const auto vocabulary = as_size(room_.session.hparams.n_vocab);
    std::size_t row = 0;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i].has_ended()) take(i, logits.subspan(row++ * vocabulary, vocabulary));
    }
  });
}

void Task::finish() {
  RequestEnd end;
  const auto now = Clock::now();
  for (auto& answer : answers_) end.answers.push_back(answer.finish());
  if (answers_.empty()) end.answers.assign(as_size(request_.answers), {{}, {}, {}, FinishReason::interrupted});
  if (!has_begun() && request_.cache) caches_.push_back(std::move(*request_.cache));
  if (answers_.empty()) {  // a clone may be there, and a text's cache with a part of the question
    const std::size_t own = request_.cache ? 1 : 0;
    caches_.erase(caches_.begin() + static_cast<std::ptrdiff_t>(std::min(own, caches_.size())), caches_.end());
  }
  end.caches = std::move(caches_);
  end.prompt_logprobs = std::move(scored_);
  end.cached_tokens = cached_tokens_;
  end.error = error_;
  end.queue_ms = ms_between(arrived_, begun_.value_or(now));
  end.read_ms = ms_between(begun_.value_or(now), answered_.value_or(now));
  end.answer_ms = ms_between(answered_.value_or(now), now);
  if (request_.events.on_end) request_.events.on_end(std::move(end));
}

}  // namespace winnow::engine
