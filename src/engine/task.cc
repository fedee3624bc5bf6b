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

/// Tokens of the cache that a request's question follows.
int source_tokens(const Request& request) {
  if (const auto* const text = std::get_if<RequestText>(&request.source)) return static_cast<int>(text->tokens.size());
  if (const auto* const past = std::get_if<RequestCache>(&request.source)) return past->cache.impl().seen;
  return std::get<std::shared_ptr<CacheSource>>(request.source)->tokens();
}

}  // namespace

Task::Task(Scheduler::Id id, Request request, RequestPlan plan, TaskRoom& room)
    : id_(id),
      request_(std::move(request)),
      plan_(std::move(plan)),
      room_(room),
      promise_(plan_.answers, request_.generate.max_tokens, room.session),
      prompt_tokens_(source_tokens(request_) + static_cast<int>(request_.question.size())) {
  if (plan_.text) text_.emplace(room_.session, request_, *plan_.text, TextStores{room_.prefixes, room_.texts.tiers()});
}

CacheSource* Task::source() const {
  const auto* const source = std::get_if<std::shared_ptr<CacheSource>>(&request_.source);
  return source == nullptr ? nullptr : source->get();
}

bool Task::needs_text() const { return source() != nullptr || (text_ && !text_->is_done()); }

std::size_t Task::with_reading(std::size_t answers) const {
  return needs_text() ? std::max(plan_.reading, answers) : answers;
}

double Task::tokens_to_read() const {
  if (source() != nullptr) return (1 - source()->done()) * prompt_tokens_;
  const double of_text = text_ ? text_->tokens_left() : 0;
  if (question_) return of_text + question_->tokens_left();
  return of_text + (has_asked_ ? 0 : static_cast<double>(request_.question.size()));
}

Clock::time_point Task::due() const {
  const std::chrono::duration<double, std::milli> needs(tokens_to_read() * room_.read_ms / room_.read_tokens);
  return arrived_ + std::chrono::duration_cast<Clock::duration>(needs);
}

RequestState Task::state() const {
  RequestState out;
  out.id = id_;
  if (has_begun()) out.phase = is_read() ? RequestState::Phase::answering : RequestState::Phase::reading;
  if (is_paused()) out.phase = RequestState::Phase::paused;
  const bool is_past = std::holds_alternative<RequestCache>(request_.source);
  const std::size_t all = is_past ? request_.question.size() : as_size(prompt_tokens_);
  out.prompt_tokens = prompt_tokens_;
  out.read = all == 0 ? 1 : 1 - tokens_to_read() / static_cast<double>(all);
  for (const auto& answer : answers_) out.generated += answer.generated();
  out.bytes_promised = promise();
  auto caches = text_ && is_reading_text() ? text_->caches() : std::vector<const Cache*>();
  for (const auto& cache : caches_) caches.push_back(&cache);
  for (const auto* const cache : caches) {
    out.bytes_held += cache->impl().bytes_held();
    out.entries_held += cache->impl().entries_held();
  }
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

void Task::fetch() {
  if (text_) guarded([this] { text_->fetch(); });
}

void Task::begin() {
  guarded([this] {
    begun_ = Clock::now();
    if (source() != nullptr) return source()->begin(room_.session);
    if (text_) {
      text_->begin();
      if (text_->is_done()) has_text(text_->take_cache(), text_->take_logits());
      return;
    }
    auto& past = std::get<RequestCache>(request_.source);
    caches_.push_back(std::move(past.cache));
    logits_ = std::move(past.logits);
    if (request_.question.empty()) prompt_is_read();
  });
}

void Task::has_text(Cache cache, std::vector<float> logits) {
  caches_.push_back(std::move(cache));
  logits_ = std::move(logits);
  if (request_.events.on_text) request_.events.on_text(caches_.front(), logits_);
  if (request_.question.empty() && !ended_) prompt_is_read();
}

void Task::read() {
  const auto began = Clock::now();
  const double before = tokens_to_read();
  guarded([this] {
    if (source() != nullptr) return read_source();
    if (is_reading_text()) return read_text();
    if (has_asked_ || request_.question.empty()) return begin_answers();
    read_question();
    if (has_asked_) prompt_is_read();
  });
  const double tokens = before - tokens_to_read();
  if (tokens <= 0) return;  // only an answer's cache was copied, or a stored text was lost
  room_.read_ms += ms_since(began);
  room_.read_tokens += tokens;
}

void Task::read_text() {
  text_->advance();
  if (text_->is_done()) has_text(text_->take_cache(), text_->take_logits());
}

/// The cache may be smaller than promised.
void Task::read_source() {
  if (this->source()->advance()) return;
  const auto source = std::exchange(std::get<std::shared_ptr<CacheSource>>(request_.source), nullptr);
  auto cache = source->take_cache();
  promise_ = {answer_plan(request_, cache.impl(), room_.session), request_.generate.max_tokens, room_.session};
  has_text(std::move(cache), source->take_logits());
}

void Task::read_question() {
  if (!question_) question_.emplace(room_.session, caches_.front().impl(), request_.question);
  if (question_->advance()) return;
  logits_ = question_->take_logits();
  question_.reset();
  has_asked_ = true;
}

void Task::prompt_is_read() {
  if (request_.events.on_prompt) request_.events.on_prompt(caches_.front(), logits_);
  if (!ended_) begin_answers();
}

/// Answers begin only after all caches have been copied from the first one, which must not change before.
void Task::begin_answers() {
  if (caches_.size() < as_size(request_.answers)) return copy_layer();
  if (answers_.empty()) {
    const auto grammar = grammar_of(request_.generate, *room_.session.model);
    const auto& prompt = caches_.front().impl().tokens;
    for (int i = 0; i < request_.answers; ++i)
      answers_.emplace_back(*room_.session.model, request_.generate, grammar, prompt, i);
  }
  for (std::int64_t steps = 0; !is_read() && !ended_ && steps < Grammar::kMostSteps;) {
    const auto answer = as_size(begun_answers_++);
    choose(answer, logits_);
    steps += answers_[answer].grammar_steps();
  }
  if (!is_read()) return;
  logits_ = {};
  answered_ = Clock::now();
}

void Task::copy_layer() {
  if (!copy_) copy_.emplace(caches_.front().impl());
  if (copy_->advance()) return;
  caches_.emplace_back(copy_->take());
  copy_.reset();
}

void Task::choose(std::size_t answer, std::span<const float> logits) {
  if (ended_) return;
  if (!answers_[answer].has_ended()) {
    const auto* const next = answers_[answer].take(logits, room_.candidates);
    if (next != nullptr && request_.events.on_token)
      request_.events.on_token(static_cast<int>(answer), next->token, next->bytes);
  }
  ended_ = ended_ || std::all_of(answers_.begin(), answers_.end(), [](const auto& a) { return a.has_ended(); });
}

std::size_t Task::choose(std::span<const std::size_t> answers, std::span<const float> logits) {
  const auto vocabulary = as_size(room_.session.hparams.n_vocab);
  std::int64_t steps = 0;
  std::size_t chosen = 0;
  for (; chosen < answers.size() && steps < Grammar::kMostSteps; ++chosen) {
    choose(answers[chosen], logits.subspan(chosen * vocabulary, vocabulary));
    steps += answers_[answers[chosen]].grammar_steps();
  }
  return chosen;
}

/// True if the answer has not ended, but has all tokens that were promised.
bool Task::is_used_up(std::size_t answer) const {
  return !answers_[answer].has_ended() && answers_[answer].generated() == promise_.tokens();
}

bool Task::needs_portion() const {
  for (std::size_t i = 0; is_read() && !ended_ && i < answers_.size(); ++i) {
    if (is_used_up(i)) return true;
  }
  return false;
}

bool Task::is_paused() const { return needs_portion() && held_.empty() && stepping().empty(); }

std::vector<std::size_t> Task::stepping() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    const bool is_held = std::find(held_.begin(), held_.end(), i) != held_.end();
    if (!answers_[i].has_ended() && !is_used_up(i) && !is_held) out.push_back(i);
  }
  return out;
}

void Task::add_rows(std::vector<StepRow>& rows) {
  for (const auto i : stepping()) {
    auto& sequence = caches_[i].impl();
    rows.push_back({&sequence, answers_[i].last(), sequence.seen});
  }
}

void Task::hold(std::span<const std::size_t> answers, std::span<const float> logits) {
  held_.insert(held_.end(), answers.begin(), answers.end());
  held_logits_.insert(held_logits_.end(), logits.begin(), logits.end());
}

void Task::take(std::span<const float> logits) {
  if (ended_) return;
  guarded([&] {
    const auto vocabulary = static_cast<std::ptrdiff_t>(room_.session.hparams.n_vocab);
    const auto answers = stepping();
    if (held_.empty()) {
      const auto chosen = choose(answers, logits);
      return hold(std::span(answers).subspan(chosen), logits.subspan(chosen * as_size(vocabulary)));
    }
    hold(answers, logits);
    const auto chosen = static_cast<std::ptrdiff_t>(choose(held_, held_logits_));
    held_.erase(held_.begin(), held_.begin() + chosen);
    held_logits_.erase(held_logits_.begin(), held_logits_.begin() + chosen * vocabulary);
  });
}

void Task::finish() {
  RequestEnd end;
  const auto now = Clock::now();
  for (auto& answer : answers_) end.answers.push_back(answer.finish());
  if (answers_.empty()) end.answers.assign(as_size(request_.answers), {{}, {}, {}, FinishReason::interrupted});
  auto* const past = std::get_if<RequestCache>(&request_.source);
  if (!has_begun() && past != nullptr) caches_.push_back(std::move(past->cache));
  if (answers_.empty()) {  // drops clones, and a text's cache with a part of the question
    const std::size_t own = past != nullptr ? 1 : 0;
    caches_.erase(caches_.begin() + static_cast<std::ptrdiff_t>(std::min(own, caches_.size())), caches_.end());
  }
  end.caches = std::move(caches_);
  if (text_) {
    end.prompt_logprobs = text_->take_scored();
    end.cached_tokens = static_cast<int>(text_->found());
  }
  end.error = error_;
  end.queue_ms = ms_between(arrived_, begun_.value_or(now));
  end.read_ms = ms_between(begun_.value_or(now), answered_.value_or(now));
  end.answer_ms = ms_between(answered_.value_or(now), now);
  if (request_.events.on_end) request_.events.on_end(std::move(end));
}

}  // namespace winnow::engine
