// SPDX-License-Identifier: Apache-2.0
#include "server/embeddings/routes.h"

#include <utility>

#include "engine/embedding.h"
#include "server/embeddings/answer.h"
#include "server/embeddings/request.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

void EmbeddingRoutes::add_to(Router& router) {
  for (const char* const path : {"/v1/embeddings", "/embeddings"}) {
    router.add(
        {"POST", path, Access::key_holders, [this](const HttpHead& head, HttpBody body, std::shared_ptr<Responder> to) {
           room_.workers.post([this, asker = room_.asker_of(head), body = std::move(body), to = std::move(to)] {
             room_.answer(*to, asker, [&] { embed(asker, body.text(), to); });
           });
         }});
  }
}

void EmbeddingRoutes::embed(const Asker& asker, const std::string& body, const std::shared_ptr<Responder>& to) {
  const auto share = std::make_shared<RequestShare>(room_.memory);
  EmbeddingRequest asked;
  {
    const Json json = parse_counted(body, *share);
    share->also_hold(bytes_of_tokenizing(body.size()));
    Fields fields(json);
    asked = read_embedding_request(fields, *room_.model, room_.context);
    room_.unknown.name(fields);
  }
  share->hold(bytes_of_tokens(asked.tokens()) + EmbeddingAnswer::bytes_of(asked));
  RequestRecord record{.path = asker.path, .id = new_id("embd-"), .key = asker.key_name};
  record.cost.prompt_tokens = static_cast<int>(asked.tokens());
  const auto answer = std::make_shared<EmbeddingAnswer>(room_.model_name, asked);
  std::vector<Request> requests(1);
  requests.front().keep = engine::EmbeddingSource::keep();
  requests.front().source = std::make_shared<engine::EmbeddingSource>(
      std::move(asked.texts), asked.pooling, [answer](std::vector<float> vector) { answer->add(std::move(vector)); });
  requests.front().generate.max_tokens = 0;
  requests.front().key = asker.key;
  const auto ticket = room_.engine.new_ticket();
  room_.engine.add(
      ticket, std::move(requests), record.id,
      std::make_shared<Observed>(std::make_shared<EmbeddingListener>(answer, holding(share, to)), room_.observers,
                                 record, asker.arrived, std::vector{record.cost.prompt_tokens}, 1));
  to->on_gone([&engine = room_.engine, ticket] { engine.cancel(ticket); });
}

}  // namespace winnow::server
