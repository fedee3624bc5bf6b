// SPDX-License-Identifier: Apache-2.0
#include "server/openai/chat_request.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "server/openai/answer.h"
#include "server/openai/errors.h"
#include "server/openai/response_format.h"

namespace winnow::server {

namespace {

constexpr const char* kMessages = "messages";

Role role_of(Fields& fields) {
  const auto role = fields.word("role", {"system", "developer", "user", "assistant", "tool", "function"});
  if (!role) throw FieldError(fields.path("role"), fields.path("role") + " is missing: give a role");
  if (*role == "tool" || *role == "function") return Role::tool;
  if (*role == "user") return Role::user;
  return *role == "assistant" ? Role::assistant : Role::system;
}

std::string read_part(const Json& value, const std::string& path) {
  Fields part(object_at(value, path), path + ".");
  const auto type = part.text("type");
  if (type.value_or("text") != "text")
    throw FieldError(part.path("type"),
                     fmt::format("{} must be text: winnow supports nothing else", part.path("type")));
  return part.required_text("text");
}

std::vector<std::string> read_content(Fields& fields) {
  const Json* const content = fields.any("content");
  if (content == nullptr) return {""};
  if (content->is_string()) return {content->get<std::string>()};
  if (!content->is_array() || content->empty())
    throw FieldError(fields.path("content"), fields.path("content") + " must be a string, or a list of parts");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < content->size(); ++i)
    out.push_back(read_part((*content)[i], fmt::format("{}[{}]", fields.path("content"), i)));
  return out;
}

void check_function(Fields& fields) {
  if (fields.text("type").value_or("function") != "function")
    throw FieldError(fields.path("type"), fields.path("type") + " must be function");
}

ToolCall read_call(Fields& fields) {
  check_function(fields);
  Fields function(fields.required_object("function"), fields.path("function."));
  return {fields.text("id").value_or(""), read_tool_name(function),
          checked_arguments(function.text("arguments").value_or(""), function.path("arguments"))};
}

AskedMessage read_message(Fields& fields) {
  const Role role = role_of(fields);
  AskedMessage out = message_of_parts(role, read_content(fields));
  if (role != Role::user) out.question = 0;
  out.said.call_id = fields.text("tool_call_id").value_or("");
  if (role == Role::tool) out.said.tool_name = fields.text("name").value_or("");
  for (const char* const name : {"reasoning", "reasoning_content"}) {
    if (auto thought = fields.text(name)) out.said.reasoning = std::move(*thought);
  }
  if (fields.object("function_call") != nullptr)
    throw NotImplemented(fields.path("function_call"),
                         fields.path("function_call") + " is not implemented: give tool_calls");
  fields.each("tool_calls", [&out](Fields& call) { out.said.calls.push_back(read_call(call)); });
  return out;
}

chat::Ending read_ending(Fields& fields, Role last) {
  const auto opens = fields.boolean("add_generation_prompt");
  if (!fields.is_set("continue_final_message"))
    return opens.value_or(true) ? chat::Ending::answer : chat::Ending::nothing;
  if (opens.value_or(false))
    throw FieldError(
        "continue_final_message",
        "continue_final_message and add_generation_prompt exclude each other: only one of them may be true");
  if (last == Role::system || last == Role::tool)
    throw FieldError(
        "continue_final_message",
        fmt::format(
            "the last message is the {}'s, so continue_final_message cannot continue it: end with one of the assistant",
            name_of(last)));
  return chat::Ending::continued;
}

chat::Tool read_tool(Fields& fields) {
  check_function(fields);
  Fields function(fields.required_object("function"), fields.path("function."));
  return {read_tool_name(function), function.text("description").value_or(""),
          read_object_schema(function, "parameters")};
}

AskedToolChoice read_choice(Fields& fields) {
  using Kind = AskedToolChoice::Kind;
  AskedToolChoice out;
  out.may_be_several = fields.boolean("parallel_tool_calls").value_or(true);
  const Json* const choice = fields.any("tool_choice");
  if (choice == nullptr) return out;
  if (choice->is_object()) {
    Fields inner(*choice, "tool_choice.");
    check_function(inner);
    Fields function(inner.required_object("function"), "tool_choice.function.");
    out.kind = Kind::named;
    out.path = function.path("name");
    out.name = read_tool_name(function);
    return out;
  }
  const auto word = fields.word("tool_choice", {"none", "auto", "required"});
  if (word == "none") out.kind = Kind::none;
  if (word == "required") out.kind = Kind::required;
  return out;
}

/// Reads `chat_template_kwargs`, vLLM's and llama.cpp's field for other variables of the template, such as
/// `enable_thinking`.
void read_variables(Fields& fields, AskedConversation& to) {
  constexpr const char* kName = "chat_template_kwargs";
  const Json* const variables = fields.object(kName);
  if (variables == nullptr) return;
  for (const auto& [name, value] : variables->items()) {
    if (name == "enable_thinking") {
      if (!value.is_boolean())
        throw FieldError(fmt::format("{}.{}", kName, name), fmt::format("{}.{} must be true or false", kName, name));
      to.thinking.wanted = value.get<bool>() ? chat::Thinking::on : chat::Thinking::off;
    } else {
      to.variables[name] = text_of(value);
    }
  }
}

}  // namespace

AskedConversation read_chat(Fields& fields) {
  AskedConversation out;
  fields.each(kMessages, [&out](Fields& message) { out.messages.push_back(read_message(message)); });
  if (out.messages.empty()) throw FieldError(kMessages, "messages are missing: give at least one");
  out.ending = read_ending(fields, out.messages.back().said.role);
  fields.each("tools", [&out](Fields& tool) { out.tools.push_back(read_tool(tool)); });
  out.choice = read_choice(fields);
  out.format = read_response_format(fields);
  read_variables(fields, out);
  ask_for_effort(fields.text("reasoning_effort"), out);
  out.thinking.budget = read_thinking_budget(fields);
  if (fields.word("reasoning_format", {"none", "auto", "deepseek"}) == "none")
    out.thinking.reasoning = chat::Reasoning::in_content;
  choose_tools(out);
  return out;
}

}  // namespace winnow::server
