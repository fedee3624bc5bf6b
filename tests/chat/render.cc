// SPDX-License-Identifier: Apache-2.0
// Runs chat templates for template_test.py: reads lines of JSON with template, bos, eos, messages and ending, and
// writes a line for each: the text and its stretches of input, or the error.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chat/template.h"

namespace {

using Json = nlohmann::ordered_json;

winnow::Role role_of(const std::string& name) {
  if (name == "system") return winnow::Role::system;
  return name == "user" ? winnow::Role::user : winnow::Role::assistant;
}

Json rendered(const Json& asked) {
  std::vector<winnow::Message> messages;
  for (const auto& message : asked.at("messages"))
    messages.push_back({role_of(message.at("role").get<std::string>()), message.at("content").get<std::string>()});
  winnow::chat::Input input;
  input.messages = messages;
  if (!asked.at("opens_answer").get<bool>()) input.ending = winnow::chat::Ending::nothing;
  const winnow::chat::Template chat_template("test", asked.at("template").get<std::string>(),
                                             asked.at("bos").get<std::string>(), asked.at("eos").get<std::string>());
  const auto out = chat_template.render(input);
  Json stretches = Json::array();
  for (const auto& stretch : out.text.input) stretches.push_back({stretch.begin, stretch.end});
  return {{"text", out.text.text}, {"input", stretches}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Json out;
    try {
      out = rendered(Json::parse(line));
    } catch (const std::exception& error) {
      out = {{"error", error.what()}};
    }
    std::cout << out.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  }
}
