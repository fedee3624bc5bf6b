// SPDX-License-Identifier: Apache-2.0
#include "server/responses/writer.h"

#include <utility>

#include "server/openai/logprobs.h"
#include "server/responses/errors.h"
#include "server/responses/response.h"

namespace winnow::server {

namespace {

Json response_usage(const AnswerCost& cost) {
  return {{"input_tokens", cost.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", cost.cached_tokens}, {"cache_write_tokens", 0}}},
          {"output_tokens", cost.answer_tokens},
          {"output_tokens_details", {{"reasoning_tokens", cost.reasoning_tokens}}},
          {"total_tokens", cost.prompt_tokens + cost.answer_tokens}};
}

Json text_part(bool is_reasoning) {
  if (is_reasoning) return {{"type", "reasoning_text"}, {"text", ""}};
  return {{"type", "output_text"}, {"text", ""}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

void add(Json& to, const std::string& text) { to.get_ref<std::string&>() += text; }

}  // namespace

Json ResponseWriter::response(const char* status) const { return response_json(plan().head, status, plan().repeated); }

void ResponseWriter::tell(const char* type, const Json& fields) {
  if (!is_streamed()) return;
  Json event{{"type", type}, {"sequence_number", events_++}};
  event.update(fields);
  write(named_event(event));
}

void ResponseWriter::tell_of_item(const char* type, const Json& fields) {
  Json all{{"output_index", output_.size() - 1}, {"item_id", item()["id"]}};
  all.update(fields);
  tell(type, all);
}

void ResponseWriter::open_stream() {
  tell("response.created", {{"response", response("in_progress")}});
  tell_going_on();
}

void ResponseWriter::tell_going_on() { tell("response.in_progress", {{"response", response("in_progress")}}); }

void ResponseWriter::open(Item kind, Json item) {
  close("completed");
  open_ = kind;
  output_.push_back(std::move(item));
  tell("response.output_item.added", {{"output_index", output_.size() - 1}, {"item", output_.back()}});
}

void ResponseWriter::open_text(Item kind) {
  if (open_ == kind) return;
  const bool is_reasoning = kind == Item::reasoning;
  if (is_reasoning) {
    open(kind, {{"id", new_id("rs_")},
                {"type", "reasoning"},
                {"status", "in_progress"},
                {"summary", Json::array()},
                {"content", Json::array()}});
  } else {
    open(kind, {{"id", new_id("msg_")},
                {"type", "message"},
                {"status", "in_progress"},
                {"role", "assistant"},
                {"content", Json::array()}});
  }
  item()["content"].push_back(text_part(is_reasoning));
  tell_of_item("response.content_part.added", {{"content_index", 0}, {"part", part()}});
}

void ResponseWriter::close_text() {
  const bool is_reasoning = open_ == Item::reasoning;
  Json done{{"content_index", 0}, {"text", part()["text"]}};
  if (!is_reasoning) done["logprobs"] = part()["logprobs"];
  tell_of_item(is_reasoning ? "response.reasoning_text.done" : "response.output_text.done", done);
  tell_of_item("response.content_part.done", {{"content_index", 0}, {"part", part()}});
}

void ResponseWriter::close(const char* status) {
  if (!open_) return;
  if (open_ == Item::call) {
    tell_of_item("response.function_call_arguments.done",
                 {{"name", item()["name"]}, {"arguments", item()["arguments"]}});
  } else {
    close_text();
  }
  open_.reset();
  item()["status"] = status;
  tell("response.output_item.done", {{"output_index", output_.size() - 1}, {"item", item()}});
}

void ResponseWriter::add_text(const std::string& text, std::span<const GeneratedToken> tokens) {
  open_text(Item::message);
  add(part()["text"], text);
  Json logprobs = Json::array();
  if (plan().form.alternatives) logprobs = chat_logprobs(tokens, *plan().form.alternatives, *model_).at("content");
  for (const auto& one : logprobs) part()["logprobs"].push_back(one);
  tell_of_item("response.output_text.delta", {{"content_index", 0}, {"delta", text}, {"logprobs", logprobs}});
}

void ResponseWriter::add_call(const CallDelta& call) {
  if (!call.name.empty()) {
    open(Item::call, {{"id", new_id("fc_")},
                      {"type", "function_call"},
                      {"status", "in_progress"},
                      {"call_id", call.id},
                      {"name", call.name},
                      {"arguments", ""}});
  }
  if (call.arguments.empty()) return;
  add(item()["arguments"], call.arguments);
  tell_of_item("response.function_call_arguments.delta", {{"delta", call.arguments}});
}

void ResponseWriter::delta(int /*choice*/, AnswerDelta delta, const AnswerCost& /*now*/) {
  if (!delta.reasoning.empty()) {
    open_text(Item::reasoning);
    add(part()["text"], delta.reasoning);
    tell_of_item("response.reasoning_text.delta", {{"content_index", 0}, {"delta", delta.reasoning}});
  }
  if (!delta.text.empty()) add_text(delta.text, delta.tokens);
  for (const auto& call : delta.calls) add_call(call);
}

void ResponseWriter::finished(const AnswerCost& cost) {
  const bool is_cut = end().reason == FinishReason::length;
  const char* const status = is_cut ? "incomplete" : "completed";
  close(status);
  Json out = response(status);
  if (is_cut) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  out["output"] = output_;
  out["usage"] = response_usage(cost);
  out["winnow"] = keeping_json(cost);
  out["timings"] = timings_json(cost);
  if (!is_streamed()) return send(text_of(out));
  tell(is_cut ? "response.incomplete" : "response.completed", {{"response", out}});
  end_stream();
}

void ResponseWriter::tell_failure(const std::exception_ptr& error) {
  Json out = response("failed");
  out["error"] = failure_json(error);
  out["output"] = output_;
  tell("response.failed", {{"response", out}});
}

}  // namespace winnow::server
