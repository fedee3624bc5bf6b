// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/observed.h"

#include <utility>

#include "base/as_size.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Observed::Observed(std::shared_ptr<AnswerListener> to, const Observers& observers, RequestRecord record,
                   Clock::time_point arrived, const std::vector<int>& prompt_tokens, int answers)
    : to_(std::move(to)), observers_(observers), record_(std::move(record)), arrived_(arrived) {
  for (const int tokens : prompt_tokens) {
    auto& prompt = prompts_.emplace_back();
    prompt.tokens = tokens;
    prompt.last.resize(as_size(answers));
  }
}

void Observed::refused(std::exception_ptr why) {
  observers_.metrics.rejected(reason_of(why));
  record_.status = status_of(why);
  record_.reason = reason_of(why);
  observers_.log.write(record_);
  to_->refused(why);
}

void Observed::read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) {
  record_.cost.add_read(stats);
  to_->read(prompt, stats, std::move(kept));
}

void Observed::has_read(Prompt& prompt) {
  if (!std::exchange(prompt.is_read, true)) observers_.metrics.read(prompt.tokens);
}

void Observed::token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) {
  const auto now = Clock::now();
  Prompt& of = prompts_.at(prompt);
  auto& last = of.last.at(as_size(answer));
  if (last) {
    observers_.metrics.next_token(seconds(now - *last));
  } else if (!of.is_read) {
    observers_.metrics.first_token(seconds(now - arrived_));
  }
  last = now;
  has_read(of);
  observers_.metrics.token();
  to_->token(prompt, answer, token, text);
}

void Observed::ended(std::size_t prompt, PromptEnd end) {
  if (end.error) {
    observers_.metrics.stopped(end);
  } else {
    has_read(prompts_.at(prompt));
    observers_.metrics.answered(end, prompts_.at(prompt).tokens, seconds(Clock::now() - arrived_));
  }
  add_to_record(end);
  to_->ended(prompt, std::move(end));
}

void Observed::cancelled(std::size_t prompt, PromptEnd end) {
  observers_.metrics.stopped(end);
  add_to_record(end);
  to_->cancelled(prompt, std::move(end));
}

/// Adds a prompt's end to the record; the last one completes it.
void Observed::add_to_record(const PromptEnd& end) {
  record_.cost.add_end(end);
  for (const auto& answer : end.answers) reasons_.insert(reason_of_end(end, answer));
  if (end.error) {
    const auto error = late_error(end.error);
    record_.status = status_of(error);
    record_.reason = reason_of(error);
    record_.message = sentence_of(error);
  }
  if (++ended_ < prompts_.size()) return;
  for (const auto& reason : reasons_) record_.finish += (record_.finish.empty() ? "" : ",") + reason;
  observers_.log.write(record_);
}

}  // namespace winnow::server
