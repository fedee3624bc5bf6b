// SPDX-License-Identifier: Apache-2.0
#include "server/openai/answering.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "server/openai/errors.h"
#include "server/openai/logprobs.h"
#include "server/utf8.h"

namespace winnow::server {

namespace {

/// A call that is not cut off is one, though `length` has ended the answer.
const char* finish_of(const Generation& generation, const std::vector<ToolCall>& calls) {
  const bool has_called = !calls.empty() && generation.finish == FinishReason::stop;
  return has_called ? "tool_calls" : finish_name(generation.finish);
}

}  // namespace

Answering::Answering(std::shared_ptr<const Model> model, AnswerPlan plan, std::shared_ptr<Responder> to)
    : model_(std::move(model)), plan_(std::move(plan)), to_(std::move(to)) {
  choices_.resize(plan_.prompt_tokens.size() * as_size(plan_.form.answers));
  answers_.resize(choices_.size());
  scored_.resize(plan_.prompt_tokens.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) choices_[i].index = static_cast<int>(i);
}

Answering::Choice& Answering::choice(std::size_t prompt, int answer) {
  return choices_.at(prompt * as_size(plan_.form.answers) + as_size(answer));
}

void Answering::accepted() {
  if (!plan_.form.stream) return;
  to_->begin();
  if (plan_.form.surface != Surface::chat) return;
  for (const auto& choice : choices_) {
    to_->write(event(chunk({{"index", choice.index},
                            {"delta", {{"role", "assistant"}, {"content", ""}}},
                            {"logprobs", nullptr},
                            {"finish_reason", nullptr}})));
  }
}

void Answering::refused(std::exception_ptr why) {
  failed_ = true;
  to_->send(error_reply(why));
}

void Answering::read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) {
  plan_.cost.add_read(stats);
  if (prompt == 0) kept_ = std::move(kept);
}

void Answering::token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) {
  if (failed_ || !plan_.form.stream) return;
  Choice& c = choice(prompt, answer);
  ++c.tokens;
  if (c.received == 0) c.is_calls = plan_.form.calls && begins_call(text);
  c.received += text.size();
  c.held += text;
  if (plan_.form.alternatives) {
    c.unsent.push_back(token);
    ++c.reported;
  }
  if (c.is_calls) return;
  const std::string whole = take_whole_characters(c.held);
  if (!whole.empty()) to_->write(event(piece(c, whole, nullptr)));
}

void Answering::ended(std::size_t prompt, PromptEnd end) {
  if (failed_) return;
  if (end.error) return fail(late_error(end.error));
  plan_.cost.add_end(end);
  scored_[prompt] = std::move(end.prompt_logprobs);
  ++ended_;
  for (std::size_t i = 0; i < end.answers.size(); ++i) {
    Choice& c = choice(prompt, static_cast<int>(i));
    if (plan_.form.stream) {
      end_stream_of(c, end.answers[i]);
    } else {
      answers_[as_size(c.index)] = std::move(end.answers[i]);
    }
  }
  if (is_all_ended()) finish();
}

Json Answering::logprobs(std::span<const GeneratedToken> tokens, Choice& c) const {
  if (!plan_.form.alternatives) return nullptr;
  if (plan_.form.surface == Surface::chat) return chat_logprobs(tokens, *plan_.form.alternatives, *model_);
  return completion_logprobs(tokens, *plan_.form.alternatives, *model_, c.offset);
}

Json Answering::chunk(Json choice) const {
  Json out = chunk_json(plan_.head, plan_.form.surface);
  out["choices"] = Json::array({std::move(choice)});
  if (plan_.form.usage_in_chunks) {
    AnswerCost now = plan_.cost;
    now.answer_tokens = 0;
    for (const auto& c : choices_) now.answer_tokens += c.tokens;
    out["usage"] = usage_json(now);
  } else if (plan_.form.usage_at_end) {
    out["usage"] = nullptr;
  }
  return out;
}

Json Answering::piece(Choice& c, const std::string& text, const Json& finish) {
  Json out{{"index", c.index}};
  if (plan_.form.surface == Surface::completion) {
    out["text"] = text;
  } else {
    out["delta"] = text.empty() ? Json::object() : Json{{"content", text}};
  }
  out["logprobs"] = c.unsent.empty() ? Json(nullptr) : logprobs(std::exchange(c.unsent, {}), c);
  out["finish_reason"] = finish;
  return chunk(std::move(out));
}

std::vector<ToolCall> Answering::calls_of(const Generation& generation) const {
  return plan_.form.calls && begins_call(generation.text) ? calls_in(generation.text) : std::vector<ToolCall>();
}

std::string Answering::id_of_calls(const Choice& c) const { return fmt::format("call-{}-{}", plan_.head.id, c.index); }

void Answering::end_stream_of(Choice& c, const Generation& generation) {
  c.tokens = static_cast<int>(generation.tokens.size());
  c.held += generation.text.substr(std::min(c.received, generation.text.size()));
  for (; c.reported < generation.logprobs.size(); ++c.reported) c.unsent.push_back(generation.logprobs[c.reported]);
  const auto calls = calls_of(generation);
  if (!calls.empty()) {
    c.held.clear();
    Json told = piece(c, "", nullptr);
    Json& list = told["choices"][0]["delta"]["tool_calls"] = calls_json(calls, id_of_calls(c));
    for (std::size_t i = 0; i < list.size(); ++i) list[i]["index"] = i;
    to_->write(event(told));
  }
  if (!c.held.empty() || !c.unsent.empty()) to_->write(event(piece(c, std::exchange(c.held, {}), nullptr)));
  Json last = piece(c, "", finish_of(generation, calls));
  if (is_all_ended()) {
    last["winnow"] = keeping_json(plan_.cost);
    last["timings"] = timings_json(plan_.cost);
  }
  to_->write(event(last));
}

Json Answering::whole_choice(Choice& c, Generation& generation) const {
  Json out{{"index", c.index}};
  if (plan_.form.surface == Surface::completion) {
    out["text"] = generation.text;
  } else {
    out["message"] = {{"role", "assistant"}, {"content", generation.text}};
  }
  const auto calls = calls_of(generation);
  if (!calls.empty()) {
    out["message"]["content"] = nullptr;
    out["message"]["tool_calls"] = calls_json(calls, id_of_calls(c));
  }
  out["logprobs"] = logprobs(generation.logprobs, c);
  out["finish_reason"] = finish_of(generation, calls);
  if (!plan_.echoed.empty()) put_prompt_before(out, c, generation);
  return out;
}

void Answering::put_prompt_before(Json& out, const Choice& c, Generation& generation) const {
  const std::size_t prompt = as_size(c.index / plan_.form.answers);
  const auto& tokens = plan_.echoed[prompt];
  std::string text;
  for (const Token token : tokens) text += model_->piece(token);
  out["text"] = text + generation.text;
  if (!plan_.form.alternatives) return;
  auto all = scored_[prompt];
  all.insert(all.end(), generation.logprobs.begin(), generation.logprobs.end());
  out["logprobs"] = echoed_logprobs(tokens.front(), all, *plan_.form.alternatives, *model_);
}

void Answering::fail(const std::exception_ptr& error) {
  failed_ = true;
  if (cancel_) cancel_();
  if (!plan_.form.stream) return to_->send(error_reply(error));
  to_->write("data: " + error_text(error) + "\n\n");
  to_->end();
}

void Answering::finish() {
  if (kept_ && remember_) remember_(kept_);
  if (plan_.form.stream) {
    if (plan_.form.usage_at_end) {
      Json last = chunk_json(plan_.head, plan_.form.surface);
      last["choices"] = Json::array();
      last["usage"] = usage_json(plan_.cost);
      to_->write(event(last));
    }
    to_->write("data: [DONE]\n\n");
    return to_->end();
  }
  Json out = answer_json(plan_.head, plan_.form.surface);
  out["choices"] = Json::array();
  for (auto& c : choices_) out["choices"].push_back(whole_choice(c, answers_[as_size(c.index)]));
  out["usage"] = usage_json(plan_.cost);
  out["winnow"] = keeping_json(plan_.cost);
  out["timings"] = timings_json(plan_.cost);
  to_->send({.body = text_of(out)});
}

}  // namespace winnow::server
