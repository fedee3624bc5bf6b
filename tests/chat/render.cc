// SPDX-License-Identifier: Apache-2.0
// Runs chat templates for template_test.py: reads lines of JSON with template, bos, eos, messages, tools, thinking and
// ending, and writes for each a line with the text and its stretches of input, or with the error.
#include <llama.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "chat/builtin.h"
#include "chat/schema.h"
#include "chat/template.h"
#include "engine/grammar_rules.h"
#include "engine/grammar_walk.h"
#include "messages.h"

namespace {

using Json = nlohmann::ordered_json;
using winnow::chat::Template;

/// Caches parsed templates: parsing runs a template many times.
const Template& template_of(const Json& asked) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  static std::map<Key, Template> read;
  const Key key{asked.at("template"), asked.value("tool_use", ""), asked.at("bos"), asked.at("eos")};
  const auto found = read.find(key);
  if (found != read.end()) return found->second;
  const auto& [source, tool_use, bos, eos] = key;
  return read.emplace(key, Template("test", {source, tool_use}, bos, eos)).first->second;
}

Json json_of(const winnow::Message& message) {
  Json calls = Json::array();
  for (const auto& call : message.calls)
    calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  return {{"content", message.content}, {"reasoning", message.reasoning}, {"calls", calls}};
}

Json json_of(const winnow::chat::Delta& delta) {
  Json calls = Json::array();
  for (const auto& call : delta.calls) {
    calls.push_back(
        {{"index", call.index}, {"id", call.more.id}, {"name", call.more.name}, {"arguments", call.more.arguments}});
  }
  return {{"content", delta.content}, {"reasoning", delta.reasoning}, {"calls", calls}};
}

/// Parses an answer that comes in chunks: as a whole, and by its deltas.
Json read(const winnow::chat::AnswerFormat& format, const Json& chunks) {
  winnow::chat::AnswerReader reader(format);
  std::string text;
  Json deltas = Json::array();
  for (const auto& chunk : chunks) {
    std::string bytes;
    for (const auto& byte : chunk) bytes += static_cast<char>(byte.get<int>());
    text += bytes;
    deltas.push_back(json_of(reader.add(bytes)));
  }
  deltas.push_back(json_of(reader.end()));
  return {{"whole", json_of(format.parse(text))}, {"streamed", json_of(reader.message())}, {"deltas", deltas}};
}

Json rendered(const Json& asked) {
  const auto messages = winnow::test::messages_of(asked);
  const auto tools = winnow::test::tools_of(asked);
  winnow::chat::Input input;
  input.messages = messages;
  input.tools = tools;
  if (!asked.at("thinks").get<bool>()) input.thinking = winnow::chat::Thinking::off;
  if (!asked.at("opens_answer").get<bool>()) input.ending = winnow::chat::Ending::nothing;
  if (asked.value("continued", false)) input.ending = winnow::chat::Ending::continued;
  if (!asked.at("separates").get<bool>()) input.reasoning = winnow::chat::Reasoning::in_content;
  input.schema = asked.value("schema", "");
  for (const auto choice : {"auto", "required", "none"}) {
    if (asked.value("choice", "auto") == choice) break;
    input.tool_choice = static_cast<winnow::chat::ToolChoice>(static_cast<int>(input.tool_choice) + 1);
  }
  const auto out = template_of(asked).render(input);
  if (asked.contains("chunks")) return read(out.answer, asked.at("chunks"));
  Json stretches = Json::array();
  for (const auto& stretch : out.text.input) stretches.push_back({stretch.begin, stretch.end});
  return {{"text", out.text.text},
          {"input", stretches},
          {"grammar", out.answer.grammar},
          {"triggers", out.answer.triggers},
          {"prefix", out.answer.prefix},
          {"preserved", out.answer.preserved},
          {"stops", out.answer.stops},
          {"thinking_start", out.answer.thinking_start},
          {"thinking_ends", out.answer.thinking_ends},
          {"left_out", out.left_out}};
}

Json grammar_of(const std::string& schema) {
  const auto out = winnow::chat::grammar_of(schema);
  return {{"grammar", out.grammar}, {"left_out", out.left_out}};
}

/// The text that libllama writes for messages by one of its own templates.
std::string by_libllama(const std::string& name, const std::vector<winnow::Message>& messages, bool opens_answer) {
  std::vector<llama_chat_message> chat;
  for (const auto& message : messages) chat.push_back({name_of(message.role), message.content.c_str()});
  std::string out(65'536, '\0');
  const auto size = llama_chat_apply_template(name.c_str(), chat.data(), chat.size(), opens_answer, out.data(),
                                              static_cast<std::int32_t>(out.size()));
  if (size < 0) throw std::runtime_error("libllama refuses it");
  out.resize(static_cast<std::size_t>(size));
  return out;
}

/// Runs the template that winnow chooses for a file's template and a vocabulary's tokens.
Json opened(const Json& asked) {
  const auto tokens = asked.at("tokens").get<std::vector<std::string>>();
  const auto has_token = [&](const std::string& token) { return std::ranges::find(tokens, token) != tokens.end(); };
  const auto out =
      winnow::chat::open_template("file", {asked.at("open"), asked.value("tool_use", "")}, "<s>", "</s>", has_token);
  const auto messages = winnow::test::messages_of(asked);
  const auto tools = winnow::test::tools_of(asked);
  winnow::chat::Input input;
  input.messages = messages;
  input.tools = tools;
  if (!asked.at("opens_answer").get<bool>()) input.ending = winnow::chat::Ending::nothing;
  Json said = {{"text", out.chat_template.render(input).text.text}, {"notice", out.notice}};
  if (asked.at("beside").get<bool>())
    said["libllama"] = by_libllama(asked.at("open"), messages, asked.at("opens_answer").get<bool>());
  return said;
}

/// For each text, the number of bytes that a grammar accepts, and whether it can end there.
Json walked(const Json& asked) {
  const auto rules = std::make_shared<const winnow::engine::GrammarRules>(asked.at("walk").get<std::string>());
  Json out = Json::array();
  for (const std::string text : asked.at("texts")) {
    winnow::engine::GrammarWalk walk(rules);
    std::size_t read = 0;
    for (; read < text.size() && walk.allows(text.substr(read, 1)); ++read) walk.accept(text.substr(read, 1));
    out.push_back({{"read", read}, {"may_end", walk.may_end()}});
  }
  return out;
}

Json answered(const Json& asked) {
  if (asked.contains("names")) {
    std::vector<const char*> names(static_cast<std::size_t>(llama_chat_builtin_templates(nullptr, 0)));
    llama_chat_builtin_templates(names.data(), names.size());
    return {{"names", names}};
  }
  if (asked.contains("walk")) return walked(asked);
  if (asked.contains("grammar_of")) return grammar_of(asked.at("grammar_of"));
  return asked.contains("open") ? opened(asked) : rendered(asked);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Json out;
    try {
      out = answered(Json::parse(line));
    } catch (const std::exception& error) {
      out = {{"error", error.what()}};
    }
    std::cout << out.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  }
}
