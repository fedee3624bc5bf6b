// SPDX-License-Identifier: Apache-2.0
#include "server/answers/conversation.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"
#include "server/tools/calls.h"

namespace winnow::server {

namespace {

/// Earlier calls as the model has written them.
std::string text_of_calls(const std::vector<ToolCall>& calls) {
  std::string out;
  for (const auto& call : calls) {
    const Json json{{"name", call.name}, {"arguments", Json::parse(call.arguments)}};
    out += (out.empty() ? "" : "\n") + text_of(json);
  }
  return out;
}

ChatMessage put_message(const AskedMessage& asked) {
  const Message& said = asked.said;
  if (said.role == Role::tool) return {Role::user, {kResultOpening, said.content}};
  ChatMessage out{said.role, {said.content.substr(asked.question)}};
  if (asked.question > 0) out.parts.insert(out.parts.begin(), said.content.substr(0, asked.question));
  if (said.calls.empty()) return out;
  if (!out.parts.back().empty()) out.parts.back() += "\n";
  out.parts.back() += text_of_calls(said.calls);
  return out;
}

void check_names(const std::vector<AskedTool>& tools) {
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const auto is_same = [&](const AskedTool& other) { return other.name == tools[i].name; };
    if (std::any_of(tools.begin(), tools.begin() + static_cast<std::ptrdiff_t>(i), is_same))
      throw FieldError("tools", fmt::format("tools has {} again", tools[i].name));
  }
}

Tools put_tools(std::vector<AskedTool> asked, const AskedToolChoice& choice) {
  using Kind = AskedToolChoice::Kind;
  check_names(asked);
  const bool has_tools = !asked.empty();
  Tools out;
  out.may_call_several = choice.may_be_several && choice.kind != Kind::named;
  out.must_call = choice.kind == Kind::required || choice.kind == Kind::named;
  if (choice.kind == Kind::none) return out;
  for (auto& tool : asked) {
    if (choice.kind == Kind::named && tool.name != choice.name) continue;
    Json definition{{"name", tool.name}};
    if (!tool.description.empty()) definition["description"] = tool.description;
    definition["parameters"] = std::move(tool.parameters);
    out.list.push_back({std::move(tool.name), std::move(tool.path), std::move(definition)});
  }
  if (!out.must_call || !out.list.empty()) return out;
  throw FieldError(choice.path, has_tools ? fmt::format("{} is {}, which is not in tools", choice.path, choice.name)
                                          : fmt::format("{} wants a call, and there are no tools", choice.path));
}

}  // namespace

ConversationRequest conversation_of(AskedConversation asked, const char* field, std::vector<std::string> left_out) {
  ConversationRequest out{.chat = {}, .field = field, .left_out = std::move(left_out)};
  for (const auto& message : asked.messages) out.chat.messages.push_back(put_message(message));
  out.chat.end = asked.end == AskedEnd::continued ? ChatEnd::continued : ChatEnd::answer;
  out.tools = put_tools(std::move(asked.tools), asked.choice);
  return out;
}

AskedMessage message_of_parts(Role role, const std::vector<std::string>& parts) {
  AskedMessage out{.said = {.role = role, .content = {}}};
  for (const auto& part : parts) {
    if (&part != &parts.front()) out.said.content += "\n";
    out.question = out.said.content.size();
    out.said.content += part;
  }
  return out;
}

std::string read_tool_name(Fields& fields) {
  const auto name = fields.text("name");
  const auto is_fit = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  if (!name || name->empty() || name->size() > 128 || !std::ranges::all_of(*name, is_fit))
    throw FieldError(fields.path("name"),
                     fields.path("name") + " must have 1 to 128 letters, digits, underscores, dashes or points");
  return *name;
}

std::string checked_arguments(const std::string& text, const std::string& path) {
  if (text.empty()) return "{}";
  try {
    parse_json<Json>(text);
    return text;
  } catch (const JsonError& error) {
    throw FieldError(path, fmt::format("{} cannot be read: {}", path, error.what()));
  }
}

}  // namespace winnow::server
