// SPDX-License-Identifier: Apache-2.0
#include "server/answers/conversation.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "base/json.h"
#include "base/printable.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

void check_names(const std::vector<chat::Tool>& tools) {
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const auto is_same = [&](const chat::Tool& other) { return other.name == tools[i].name; };
    if (std::any_of(tools.begin(), tools.begin() + static_cast<std::ptrdiff_t>(i), is_same))
      throw FieldError("tools", fmt::format("tools has the function {} twice", tools[i].name));
  }
}

}  // namespace

std::size_t AskedConversation::size() const {
  std::size_t out = 0;
  for (const auto& [said, question] : messages) {
    out += said.content.size() + said.reasoning.size();
    for (const auto& call : said.calls) out += call.name.size() + call.arguments.size();
  }
  for (const auto& tool : tools) out += tool.name.size() + tool.description.size() + tool.parameters.size();
  return out + format.schema.size();
}

void ask_for_effort(const std::optional<std::string>& effort, AskedConversation& asked) {
  if (!effort) return;
  if (*effort == "none") {
    asked.thinking.wanted = chat::Thinking::off;
  } else {
    asked.variables["reasoning_effort"] = text_of(*effort);
  }
}

std::optional<int> read_thinking_budget(Fields& fields) {
  std::optional<int> out;
  for (const char* const name : {"thinking_token_budget", "thinking_budget_tokens", "reasoning_budget_tokens"}) {
    const auto tokens = fields.integer(name, -1, std::numeric_limits<int>::max());
    if (tokens) out = *tokens < 0 ? std::nullopt : std::optional(static_cast<int>(*tokens));  // -1: no limit
  }
  return out;
}

void choose_tools(AskedConversation& asked) {
  using Kind = AskedToolChoice::Kind;
  auto& [kind, name, may_be_several, path] = asked.choice;
  auto& tools = asked.tools;
  check_names(tools);
  const bool has_tools = !tools.empty();
  if (kind == Kind::none) tools.clear();
  if (kind == Kind::named) {
    std::erase_if(tools, [&wanted = name](const chat::Tool& tool) { return tool.name != wanted; });
    may_be_several = false;  // naming a function asks for one call
  }
  if (!tools.empty() || kind == Kind::automatic || kind == Kind::none) return;
  throw FieldError(path, has_tools ? fmt::format("{} is {}, which is not one of the tools", path, name)
                                   : fmt::format("{} requires a call, but there are no tools", path));
}

bool leaves_out(const std::string& type, const char* of_functions, AskedConversation& to) {
  if (type == of_functions) return false;
  to.left_out.push_back(fmt::format("tools of the type {} are not supported, and are ignored", brief(type)));
  return true;
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
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "{}";
  try {
    parse_json<Json>(text);
    return text;
  } catch (const JsonError& error) {
    throw FieldError(path, fmt::format("{} cannot be read: {}", path, error.what()));
  }
}

}  // namespace winnow::server
