// SPDX-License-Identifier: Apache-2.0
#include "server/responses/body.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "server/answers/conversation.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"
#include "server/openai/generation_fields.h"
#include "server/openai/missing_fields.h"
#include "server/openai/response_format.h"
#include "server/responses/input.h"

namespace winnow::server {

namespace {

/// Refuses fields that need stored answers: an answer without the earlier messages would be a different one.
void refuse_memory(Fields& fields) {
  const auto refuse = [](const char* name, const char* instead) {
    throw FieldError(name, fmt::format("{} is not supported: {}", name, instead));
  };
  if (fields.any("previous_response_id") != nullptr)
    refuse("previous_response_id", "responses are not stored, so send the whole conversation as input");
  if (fields.any("conversation") != nullptr)
    refuse("conversation", "conversations are not stored for this API, so send the whole conversation as input");
  if (fields.any("prompt") != nullptr)
    refuse("prompt", "prompts are not stored, so send the prompt's text as instructions");
  if (fields.is_set("background")) refuse("background", "responses are not stored, so wait for the answer");
}

/// Reads functions. Leaves out the tools that OpenAI's servers run.
void read_response_tools(Fields& fields, AskedConversation& to) {
  fields.each("tools", [&to](Fields& tool) {
    if (leaves_out(tool.required_text("type"), "function", to)) return;
    to.tools.push_back(
        {read_tool_name(tool), tool.text("description").value_or(""), read_object_schema(tool, "parameters")});
  });
}

/// Removes the tools that the answer may not call.
void keep_allowed(Fields& choice, AskedConversation& to) {
  std::vector<std::string> names;
  choice.each("tools", [&names](Fields& tool) {
    if (tool.required_text("type") == "function") names.push_back(read_tool_name(tool));
  });
  std::erase_if(to.tools, [&names](const chat::Tool& tool) { return std::ranges::count(names, tool.name) == 0; });
  if (choice.word("mode", {"auto", "required"}) == "required") to.choice.kind = AskedToolChoice::Kind::required;
}

void read_response_choice(Fields& fields, AskedConversation& to) {
  using Kind = AskedToolChoice::Kind;
  to.choice.may_be_several = fields.boolean("parallel_tool_calls").value_or(true);
  const Json* const choice = fields.any("tool_choice");
  if (choice == nullptr) return;
  if (!choice->is_object()) {
    const auto word = fields.word("tool_choice", {"none", "auto", "required"});
    to.choice.kind = word == "none" ? Kind::none : word == "required" ? Kind::required : Kind::automatic;
    return;
  }
  Fields inner(*choice, "tool_choice.");
  const auto type = inner.word("type", {"function", "allowed_tools"});
  if (!type) throw FieldError("tool_choice.type", "tool_choice.type is missing: give function or allowed_tools");
  if (*type == "allowed_tools") return keep_allowed(inner, to);
  to.choice = {Kind::named, read_tool_name(inner), false, "tool_choice.name"};
}

void read_reasoning(Fields& fields, AskedConversation& to) {
  to.thinking.budget = read_thinking_budget(fields);
  const Json* const reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return;
  Fields inner(*reasoning, "reasoning.");
  ask_for_effort(inner.text("effort"), to);
}

AskedFormat read_text_format(Fields& fields) {
  const Json* const text = fields.object("text");
  if (text == nullptr) return {};
  Fields inner(*text, "text.");
  return read_format(inner, "format");
}

/// Reads whether `include` asks for log probabilities.
std::optional<int> read_response_alternatives(Fields& fields) {
  const auto count = fields.integer("top_logprobs", 0, 20);
  const Json* const include = fields.list("include");
  for (std::size_t i = 0; include != nullptr && i < include->size(); ++i) {
    if (text_at((*include)[i], fmt::format("include[{}]", i)) == "message.output_text.logprobs")
      return static_cast<int>(count.value_or(0));
  }
  return std::nullopt;
}

/// Fields of the request that the answer repeats.
Json repeated_of(Fields& fields) {
  Json out = Json::object();
  for (const char* const name : {"max_output_tokens", "metadata", "parallel_tool_calls", "temperature", "top_p"}) {
    if (const Json* const value = fields.any(name)) out[name] = *value;
  }
  return out;
}

}  // namespace

AnswerRequest read_responses_body(Fields& fields, const RequestTerms& terms) {
  refuse_memory(fields);
  AnswerRequest out;
  out.form.stream = fields.is_set("stream");
  out.form.alternatives = read_response_alternatives(fields);
  read_sharing(fields, out.form);
  out.generate = read_generation(fields, out.form, terms.defaults, terms.model.info());
  if (const auto most = fields.integer("max_output_tokens", 0, std::numeric_limits<int>::max()))
    out.generate.max_tokens = static_cast<int>(*most);
  AskedConversation conversation;
  conversation.field = "input";
  conversation.messages = read_input(fields, conversation.left_out);
  read_response_tools(fields, conversation);
  read_response_choice(fields, conversation);
  read_reasoning(fields, conversation);
  conversation.format = read_text_format(fields);
  choose_tools(conversation);
  out.asked = std::move(conversation);
  read_without_effect(fields);
  for (const char* const name : {"truncation", "stream_options", "max_tool_calls"}) fields.any(name);
  out.repeated = repeated_of(fields);
  return out;
}

}  // namespace winnow::server
