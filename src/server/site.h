// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/asker.h"
#include "server/asking.h"
#include "server/conversations/conversations.h"
#include "server/documents/questions.h"
#include "server/documents/routes.h"
#include "server/embeddings/routes.h"
#include "server/engine_thread.h"
#include "server/hosts.h"
#include "server/http/router.h"
#include "server/kept/finished.h"
#include "server/keys.h"
#include "server/metrics/metrics.h"
#include "server/openai/about.h"
#include "server/openai/fields.h"
#include "server/options.h"
#include "server/origins.h"
#include "server/post.h"
#include "server/request_log.h"
#include "server/request_memory.h"
#include "server/workers.h"

namespace winnow::server {

/// The routes of the server and their handlers. It outlives the connections, and the engine outlives it.
class Site : public HttpHandler {
 public:
  /// `to_http` runs an action in the HTTP thread. Throws InputError if conversations cannot be stored.
  Site(std::shared_ptr<const Model> model, const ServerOptions& options, EngineThread& engine, Post to_http);

  std::vector<Header> headers_for(const HttpHead& head) const override {
    return hosts_.allow(head) ? origins_.headers_for(head) : std::vector<Header>();
  }
  bool answers_head(const HttpHead& head, HttpReply& reply) const override;
  bool takes_body(const HttpHead& head) const override;
  void handle(HttpHead head, HttpBody body, std::shared_ptr<Responder> to) override;
  void finished() override { --active_; }
  HttpReply refusal(int status, const std::string& sentence, const std::string& path) const override;

  /// Refuses requests from now on.
  void drain() { health_ = Health::draining; }
  /// Tells the workers to stop, without waiting. Thread-safe.
  void request_stop();
  /// Stops the workers: from now on only the HTTP thread runs.
  void stop();
  /// Number of requests that are being answered.
  int active() const { return active_; }

 private:
  /// Adds the routes for the server and its model.
  void add_about();
  void add_now(const std::string& path, Access access, const std::function<HttpReply(const HttpHead&)>& reply);
  void add_text_route(const std::string& path, TextRoute route);
  void add_answers(const Surface& surface);
  void add_kept(const std::string& path);
  void add_conversations(const std::string& path);
  void add_embeddings();

  Asker asker_of(const HttpHead& head) const;
  /// Counts and logs a refusal, and returns its reply.
  HttpReply refused(const std::exception_ptr& why, const Asker& asker) const;
  /// Calls `work` in a worker, and replies with an error if it throws.
  void answer(Responder& to, const Asker& asker, const std::function<void()>& work) const;
  ServedModel served_;
  const ServerOptions& options_;
  EngineThread& engine_;
  Post to_http_;
  Keys keys_;
  Hosts hosts_;
  Origins origins_;
  Router router_;
  Conversations conversations_;
  std::shared_ptr<RequestMemory> memory_;
  FinishedRequests finished_;  ///< used by the HTTP thread only
  const std::unique_ptr<Metrics> metrics_;
  const std::unique_ptr<RequestLog> log_;
  Health health_ = Health::ok;
  int active_ = 0;
  DocumentRoutes documents_;
  UnknownFields unknown_;
  std::optional<Asking> asking_;
  std::optional<EmbeddingRoutes> embeddings_;
  Workers store_workers_;  ///< separate, so that other requests do not wait for a store
  Workers workers_;        ///< destroyed first: its work uses all other members
};

}  // namespace winnow::server
