// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/documents/shelf.h"
#include "server/engine_thread.h"
#include "server/http/router.h"
#include "server/keys.h"
#include "server/openai/errors.h"
#include "server/workers.h"
#include "winnow/model.h"

namespace winnow::server {

/// /v1/documents: the documents that the server keeps for all who have a key.
class DocumentRoutes {
 public:
  /// Opens the store that is `where`. Throws UsageError, InputError.
  DocumentRoutes(std::shared_ptr<const Model> model, const std::string& where, EngineThread& engine, const Keys& keys);

  void add_to(Router& router);
  Shelf& shelf() { return shelf_; }
  /// Does something that may wait for the store, in a worker; what it throws is the answer.
  void post(const std::shared_ptr<Responder>& to, std::function<void()> action);
  /// Ends the workers.
  void stop() { workers_.stop(); }

 private:
  void add_now(Router& router, const std::string& method, const std::string& path,
               std::function<HttpReply(const std::string& name)> reply);
  /// From the body to the store, or to the engine first.
  void add_document(const std::string& key, const std::string& body, const std::shared_ptr<Responder>& to);
  HttpReply list();
  HttpReply info(const std::string& name);
  HttpReply remove(const std::string& name);

  std::shared_ptr<const Model> model_;
  EngineThread& engine_;
  const Keys& keys_;
  Shelf shelf_;
  Workers workers_;  ///< of their own: others do not wait for the store
};

/// The error where the server has no store.
ApiError no_documents(const std::string& field);

/// What the routes say where the server has no store.
void add_absent_documents(Router& router);

}  // namespace winnow::server
