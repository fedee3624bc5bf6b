// SPDX-License-Identifier: Apache-2.0
#include "server/answers/answering.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "server/openai/errors.h"
#include "server/utf8.h"

namespace winnow::server {

Answering::Answering(std::shared_ptr<const Model> model, AnswerPlan plan, const MakeReader& make_reader,
                     std::shared_ptr<AnswerWriter> writer)
    : model_(std::move(model)), plan_(std::move(plan)), writer_(std::move(writer)) {
  const int choices = static_cast<int>(plan_.prompt_tokens.size()) * plan_.form.answers;
  for (int i = 0; i < choices; ++i) choices_.push_back({i, make_reader()});
}

Answering::Choice& Answering::choice(std::size_t prompt, int answer) {
  return choices_.at(prompt * as_size(plan_.form.answers) + as_size(answer));
}

void Answering::refused(std::exception_ptr why) {
  failed_ = true;
  writer_->refused(why);
}

void Answering::read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) {
  plan_.cost.add_read(stats);
  if (prompt == 0) kept_ = std::move(kept);
}

void Answering::token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) {
  if (failed_ || !plan_.form.stream) return;
  Choice& c = choice(prompt, answer);
  ++c.tokens;
  ++plan_.cost.answer_tokens;
  c.received += text.size();
  c.held += text;
  if (plan_.form.alternatives) {
    c.unsent.push_back(token);
    ++c.reported;
  }
  const std::string whole = take_whole_characters(c.held);
  if (whole.empty()) return;
  if (auto delta = c.reader->take(whole); !delta.says_nothing()) tell(c, std::move(delta));
}

void Answering::tell(Choice& c, AnswerDelta delta) {
  delta.tokens = std::exchange(c.unsent, {});
  for (auto& call : delta.calls) {
    if (call.name.empty()) continue;
    c.has_called = true;
    if (call.id.empty()) call.id = fmt::format("call-{}-{}-{}", plan_.head.id, c.index, call.index);
  }
  writer_->delta(c.index, std::move(delta), plan_.cost);
}

void Answering::ended(std::size_t prompt, PromptEnd end) {
  if (failed_) return;
  if (end.error) {
    failed_ = true;
    if (cancel_) cancel_();
    return writer_->failed(late_error(end.error));
  }
  for (std::size_t i = 0; i < end.answers.size(); ++i)
    plan_.cost.answer_tokens -= std::exchange(choice(prompt, static_cast<int>(i)).tokens, 0);
  plan_.cost.add_end(end);
  ++ended_;
  const auto scored = std::make_shared<const std::vector<GeneratedToken>>(std::move(end.prompt_logprobs));
  for (std::size_t i = 0; i < end.answers.size(); ++i)
    end_choice(choice(prompt, static_cast<int>(i)), end.answers[i], {.prompt_logprobs = scored});
  if (!is_all_ended()) return;
  if (kept_ && remember_) remember_(kept_);
  writer_->finished(plan_.cost);
}

void Answering::end_choice(Choice& c, const Generation& generation, AnswerEnd end) {
  c.held += generation.text.substr(std::min(c.received, generation.text.size()));
  for (; c.reported < generation.logprobs.size(); ++c.reported) c.unsent.push_back(generation.logprobs[c.reported]);
  AnswerDelta last = c.reader->take(std::exchange(c.held, {}));
  last.add(c.reader->finish());
  if (!last.says_nothing() || !c.unsent.empty()) tell(c, std::move(last));
  end.reason = generation.finish;
  end.stop = stop_of(generation);
  end.has_called = c.has_called;
  end.is_of_last_prompt = is_all_ended();
  writer_->ended(c.index, end, plan_.cost);
}

/// The answer's tokens include the one that completed the stop text; its text does not.
std::string Answering::stop_of(const Generation& generation) const {
  if (generation.finish != FinishReason::stop || plan_.stops.empty()) return {};
  std::string all;
  for (const Token token : generation.tokens) all += model_->vocab().text(token);
  const auto begins = [rest = std::string_view(all).substr(std::min(all.size(), generation.text.size()))](
                          const std::string& stop) { return !stop.empty() && rest.starts_with(stop); };
  const auto found = std::ranges::find_if(plan_.stops, begins);
  return found == plan_.stops.end() ? std::string() : *found;
}

}  // namespace winnow::server
