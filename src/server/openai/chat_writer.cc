// SPDX-License-Identifier: Apache-2.0
#include "server/openai/chat_writer.h"

#include "server/openai/logprobs.h"

namespace winnow::server {

namespace {

Json call_json(const CallDelta& call) {
  return {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

/// The first delta of a call has its name, the others have parts of its arguments.
Json call_delta(const CallDelta& call) {
  Json out = call.name.empty() ? Json{{"function", {{"arguments", call.arguments}}}} : call_json(call);
  out["index"] = call.index;
  return out;
}

/// Adds reasoning under both names, llama.cpp's and vLLM's.
void put_reasoning(Json& message, const std::string& reasoning) {
  if (!reasoning.empty()) message["reasoning_content"] = message["reasoning"] = reasoning;
}

}  // namespace

void ChatWriter::put_delta(Json& choice, const AnswerDelta& delta) const {
  Json& out = choice["delta"] = Json::object();
  put_reasoning(out, delta.reasoning);
  if (!delta.text.empty()) out["content"] = delta.text;
  if (delta.calls.empty()) return;
  out["tool_calls"] = Json::array();
  for (const auto& call : delta.calls) out["tool_calls"].push_back(call_delta(call));
}

void ChatWriter::put_whole(Json& choice, const Whole& whole) const {
  const AnswerDelta& delta = whole.answer;
  Json& message = choice["message"] = {{"role", "assistant"}, {"content", delta.text}};
  put_reasoning(message, delta.reasoning);
  if (delta.calls.empty()) return;
  if (delta.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = Json::array();
  for (const auto& call : delta.calls) message["tool_calls"].push_back(call_json(call));
}

Json ChatWriter::logprobs(int /*choice*/, std::span<const GeneratedToken> tokens) {
  return chat_logprobs(tokens, *plan().form.alternatives, model());
}

/// Complete calls count as calls, even if `length` ended the answer.
const char* ChatWriter::finish_of(const AnswerEnd& end) const {
  return end.has_called && end.reason == FinishReason::stop ? "tool_calls" : finish_name(end.reason);
}

}  // namespace winnow::server
