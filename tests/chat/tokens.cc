// SPDX-License-Identifier: Apache-2.0
// Tokens of conversations for tokens_test.py, by winnow and as llama.cpp's server has them: `tokens GGUF` reads lines
// of JSON with template, messages, tools and thinks, and writes a line for each. Of the GGUF, only the vocabulary is
// read.
#include <chat.h>
#include <common.h>
#include <json.h>
#include <llama.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chat/template.h"
#include "engine/wording.h"
#include "messages.h"
#include "model/model_file.h"
#include "model/vocab.h"

namespace {

using Json = nlohmann::ordered_json;

/// One template, parsed by both.
struct Source {
  std::string text;
  winnow::chat::Template by_winnow;
  common_chat_templates_ptr by_llama;
};

Source source_of(const std::string& text, const winnow::model::Vocab& vocab, const llama_model* model) {
  const auto name = [&](winnow::Token token) { return token < 0 ? "" : vocab.name(token); };
  return {text,
          {"test", {text}, name(vocab.beginning_of_text()), name(vocab.end_of_text())},
          common_chat_templates_init(model, text)};
}

Json by_winnow(const winnow::chat::Template& source, const winnow::model::Vocab& vocab, const Json& asked) {
  const auto messages = winnow::test::messages_of(asked);
  const auto tools = winnow::test::tools_of(asked);
  winnow::chat::Input input;
  input.messages = messages;
  input.tools = tools;
  if (!asked.at("thinks").get<bool>()) input.thinking = winnow::chat::Thinking::off;
  const auto text = source.render(input).text;
  return {{"text", text.text}, {"tokens", winnow::tokens_of(vocab, text)}};
}

Json by_llama(const common_chat_templates* source, const llama_vocab* vocab, const Json& asked) {
  common_chat_templates_inputs inputs;
  inputs.messages = common_chat_msgs_parse_oaicompat(common_json::parse(asked.at("messages").dump()));
  inputs.tools = common_chat_tools_parse_oaicompat(common_json::parse(asked.at("tools").dump()));
  inputs.enable_thinking = asked.at("thinks").get<bool>();
  inputs.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
  const auto text = common_chat_templates_apply(source, inputs).prompt;
  return {{"text", text}, {"tokens", common_tokenize(vocab, text, true, true)}};
}

/// The result, or the error.
template <class Run>
Json tried(const Run& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  auto parameters = llama_model_default_params();
  parameters.vocab_only = true;
  const std::unique_ptr<llama_model, decltype(&llama_model_free)> model(llama_model_load_from_file(argv[1], parameters),
                                                                        llama_model_free);
  const winnow::model::ModelFile file(argv[1]);
  const winnow::model::Vocab vocab(file);
  std::optional<Source> source;  // consecutive lines share it
  for (std::string line; std::getline(std::cin, line);) {
    const auto asked = Json::parse(line);
    const auto text = asked.at("template").get<std::string>();
    if (!source || source->text != text) source = source_of(text, vocab, model.get());
    const Json out = {
        {"winnow", tried([&] { return by_winnow(source->by_winnow, vocab, asked); })},
        {"llama", tried([&] { return by_llama(source->by_llama.get(), llama_model_get_vocab(model.get()), asked); })}};
    std::cout << out.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  }
}
