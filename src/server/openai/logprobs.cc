// SPDX-License-Identifier: Apache-2.0
#include "server/openai/logprobs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

#include "server/utf8.h"

namespace winnow::server {

namespace {

/// The name of a token. One that is not a whole character gets its bytes, as in OpenAI's API, so that names are unique.
std::string shown_text(const std::string& name) {
  if (is_utf8(name)) return name;
  std::string out = "bytes:";
  for (const char byte : name) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string token_name(Token token, const Model& model) { return model.vocab().name(token); }

Json utf8_bytes(const std::string& text) {
  Json out = Json::array();
  for (const char byte : text) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

Json one(const TokenLogprob& token, const Model& model) {
  const std::string name = token_name(token.id, model);
  return {{"token", shown_text(name)}, {"logprob", token.logprob}, {"bytes", utf8_bytes(name)}};
}

std::span<const TokenLogprob> best(const GeneratedToken& token, int alternatives) {
  return std::span(token.top).first(std::min(token.top.size(), static_cast<std::size_t>(alternatives)));
}

}  // namespace

Json chat_logprobs(std::span<const GeneratedToken> tokens, int alternatives, const Model& model) {
  Json content = Json::array();
  for (const auto& token : tokens) {
    Json entry = one(token.chosen, model);
    entry["top_logprobs"] = Json::array();
    for (const auto& other : best(token, alternatives)) entry["top_logprobs"].push_back(one(other, model));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json completion_logprobs(std::span<const GeneratedToken> tokens, int alternatives, const Model& model,
                         std::size_t& offset) {
  Json out{{"tokens", Json::array()},
           {"token_logprobs", Json::array()},
           {"top_logprobs", Json::array()},
           {"text_offset", Json::array()}};
  for (const auto& token : tokens) {
    out["tokens"].push_back(shown_text(token_name(token.chosen.id, model)));
    out["token_logprobs"].push_back(token.chosen.logprob);
    Json top = Json::object();
    for (const auto& other : best(token, alternatives)) top[shown_text(token_name(other.id, model))] = other.logprob;
    out["top_logprobs"].push_back(std::move(top));
    out["text_offset"].push_back(offset);
    offset += count_characters(model.vocab().text(token.chosen.id));
  }
  return out;
}

Json echoed_logprobs(Token first, std::span<const GeneratedToken> others, int alternatives, const Model& model) {
  std::size_t offset = count_characters(model.vocab().text(first));
  Json out = completion_logprobs(others, alternatives, model, offset);
  const auto put_first = [&out](const char* list, Json value) {
    out[list].insert(out[list].begin(), std::move(value));
  };
  put_first("tokens", shown_text(token_name(first, model)));
  put_first("token_logprobs", nullptr);
  put_first("top_logprobs", nullptr);
  put_first("text_offset", 0);
  return out;
}

}  // namespace winnow::server
