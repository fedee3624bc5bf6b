// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "chat/template.h"
#include "winnow/conversation.h"

namespace winnow::test {

inline Role role_of(const std::string& name) {
  for (const auto role : {Role::system, Role::user, Role::assistant, Role::tool})
    if (name == name_of(role)) return role;
  throw std::runtime_error("there is no role " + name);
}

/// A message in the form of OpenAI's API, with arguments as texts.
inline Message message_of(const nlohmann::ordered_json& asked) {
  using Json = nlohmann::ordered_json;
  Message out{role_of(asked.at("role")), asked.value("content", "")};
  out.reasoning = asked.value("reasoning_content", "");
  out.call_id = asked.value("tool_call_id", "");
  out.tool_name = asked.value("name", "");
  for (const auto& call : asked.value("tool_calls", Json::array())) {
    const auto& function = call.at("function");
    out.calls.push_back({call.at("id"), function.at("name"), function.at("arguments")});
  }
  return out;
}

inline std::vector<Message> messages_of(const nlohmann::ordered_json& asked) {
  std::vector<Message> out;
  for (const auto& message : asked.at("messages")) out.push_back(message_of(message));
  return out;
}

inline std::vector<chat::Tool> tools_of(const nlohmann::ordered_json& asked) {
  std::vector<chat::Tool> out;
  for (const auto& tool : asked.value("tools", nlohmann::ordered_json::array())) {
    const auto& function = tool.at("function");
    out.push_back({function.at("name"), function.at("description"), function.at("parameters").dump()});
  }
  return out;
}

}  // namespace winnow::test
