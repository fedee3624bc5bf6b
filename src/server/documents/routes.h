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

/// Parts of the server that requests for documents need; all outlive them.
struct DocumentsRoom {
  std::shared_ptr<const Model> model;
  EngineThread& engine;
  std::shared_ptr<RequestMemory> memory;
  Observers observers;
  std::function<Asker(const HttpHead&)> asker_of;
  /// Calls what may throw for a request; an error is its answer.
  std::function<void(Responder&, const Asker&, const std::function<void()>&)> answer;
};

/// /v1/documents: the documents that the server keeps for all who have a key.
class DocumentRoutes {
 public:
  /// Opens the store that is `where`; empty: there is none, and the routes say so. Throws UsageError, InputError.
  DocumentRoutes(DocumentsRoom room, const std::string& where);

  void add_to(Router& router);
  /// Null where there is no store.
  Shelf* shelf() { return shelf_ ? &*shelf_ : nullptr; }
  /// Has the workers end what they do.
  void request_stop() { workers_.request_stop(); }
  /// Ends the workers.
  void stop() { workers_.stop(); }

 private:
  struct Asked {
    Asker asker;
    std::string name;  ///< in the path
    HttpBody body;
    std::shared_ptr<Responder> to;
  };
  using Work = std::function<void(Shelf&, const Asked&)>;
  using Reply = HttpReply (*)(Shelf&, const std::string& name);
  /// Work may wait for the store: it is done in a worker.
  void add(Router& router, const std::string& method, const std::string& path, Work work);
  void add_now(Router& router, const std::string& method, const std::string& path, Reply reply);
  /// From the body to the store, where the document may be already.
  void add_document(Shelf& shelf, const Asked& asked);
  /// By the engine, which reads it first.
  void read_document(Shelf& shelf, const Asked& asked, std::unique_ptr<documents::Adding> adding,
                     const CacheOptions& keep, std::shared_ptr<RequestShare> share);
  /// Throws ApiError where there is no store.
  Shelf& open_shelf();

  DocumentsRoom room_;
  std::optional<Shelf> shelf_;
  Workers workers_;  ///< of their own: others do not wait for the store
};

/// The error where the server has no store.
ApiError no_documents(const std::string& field);

}  // namespace winnow::server
