// SPDX-License-Identifier: Apache-2.0
#include "server/kept/reply.h"

#include "server/openai/answer.h"
#include "server/utf8.h"

namespace winnow::server {

namespace {

/// The text of each token, [token]. A character of several tokens belongs to the last of them.
Json token_texts_of(const Model& model, const std::vector<Token>& tokens) {
  Json out = Json::array();
  std::string held;
  for (const Token token : tokens) {
    held += model.vocab().name(token);
    out.push_back(take_whole_characters(held));
  }
  return out;
}

Json layer_json(const KeptPositions::Layer& layer) {
  Json out = Json::array();
  for (const auto& runs : layer) {
    Json& head = out.emplace_back(Json::array());
    for (const Run run : runs) head.push_back({run.first, run.last});
  }
  return out;
}

}  // namespace

HttpReply kept_reply(const Model& model, const FinishedRequest& request) {
  Json layers = Json::array();
  for (const auto& layer : request.kept->layers()) layers.push_back(layer_json(layer));
  return {.body = text_of({{"id", request.id},
                           {"object", "winnow.kept"},
                           {"spec", request.spec},
                           {"budget", request.budget},
                           {"prompt_tokens", request.tokens.size()},
                           {"compressed_tokens", request.kept->seen()},
                           {"entries_per_head", request.kept->entries_per_head()},
                           {"layers", std::move(layers)},
                           {"pieces", token_texts_of(model, request.tokens)}})};
}

}  // namespace winnow::server
