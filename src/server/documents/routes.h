// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "documents/adding.h"
#include "server/asker.h"
#include "server/documents/shelf.h"
#include "server/engine_thread.h"
#include "server/http/router.h"
#include "server/metrics/observed.h"
#include "server/openai/errors.h"
#include "server/request_memory.h"
#include "server/workers.h"
#include "winnow/model.h"

namespace winnow::server {

/// Parts of the server that requests for documents need; all outlive DocumentRoutes.
struct DocumentsRoom {
  std::shared_ptr<const Model> model;
  EngineThread& engine;
  std::shared_ptr<RequestMemory> memory;
  Observers observers;
  std::function<Asker(const HttpHead&)> asker_of;
  /// Calls a function for a request, and replies with an error if it throws.
  std::function<void(Responder&, const Asker&, const std::function<void()>&)> answer;
};

/// /v1/documents: documents that the server stores for all clients with a key.
class DocumentRoutes {
 public:
  /// Opens the store at `where`. If `where` is empty there is no store, and the routes reply so. Throws UsageError,
  /// InputError.
  DocumentRoutes(DocumentsRoom room, const std::string& where);

  void add_to(Router& router);
  /// Null if there is no store.
  Shelf* shelf() { return shelf_ ? &*shelf_ : nullptr; }
  /// Tells the workers to stop, without waiting.
  void request_stop() { workers_.request_stop(); }
  /// Stops the workers.
  void stop() { workers_.stop(); }

 private:
  struct Asked {
    Asker asker;
    std::string name;  ///< from the path
    HttpBody body;
    std::shared_ptr<Responder> to;
  };
  using Work = std::function<void(Shelf&, const Asked&)>;
  using Reply = HttpReply (*)(Shelf&, const std::string& name);
  /// Adds a route whose work may block on the store, and so runs in a worker.
  void add(Router& router, const std::string& method, const std::string& path, Work work);
  void add_now(Router& router, const std::string& method, const std::string& path, Reply reply);
  /// Replies at once if the store already has the document; otherwise has it read.
  void add_document(Shelf& shelf, const Asked& asked);
  /// Has the engine read the document, and then stores it.
  void read_document(Shelf& shelf, const Asked& asked, std::unique_ptr<documents::Adding> adding,
                     const CacheOptions& keep, std::shared_ptr<RequestShare> share);
  /// Throws ApiError if there is no store.
  Shelf& open_shelf();

  DocumentsRoom room_;
  std::optional<Shelf> shelf_;
  Workers workers_;  ///< separate, so that other requests do not wait for the store
};

/// The error if the server has no store.
ApiError no_documents(const std::string& field);

}  // namespace winnow::server
