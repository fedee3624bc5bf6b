// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/asker.h"
#include "server/engine_thread.h"
#include "server/http/router.h"
#include "server/metrics/observed.h"
#include "server/openai/unknown_fields.h"
#include "server/request_memory.h"
#include "server/workers.h"
#include "winnow/model.h"

namespace winnow::server {

/// Parts of the server that requests for embeddings need; all outlive EmbeddingRoutes.
struct EmbeddingRoom {
  std::shared_ptr<const Model> model;
  const std::string& model_name;
  int context;  ///< tokens
  EngineThread& engine;
  std::shared_ptr<RequestMemory> memory;
  Observers observers;
  UnknownFields& unknown;
  Workers& workers;
  std::function<Asker(const HttpHead&)> asker_of;
  /// Calls a function for a request, and replies with an error if it throws.
  std::function<void(Responder&, const Asker&, const std::function<void()>&)> answer;
};

/// /v1/embeddings: computes vectors of texts, as requests among others.
class EmbeddingRoutes {
 public:
  explicit EmbeddingRoutes(EmbeddingRoom room) : room_(std::move(room)) {}

  void add_to(Router& router);

 private:
  void embed(const Asker& asker, const std::string& body, const std::shared_ptr<Responder>& to);

  EmbeddingRoom room_;
};

}  // namespace winnow::server
