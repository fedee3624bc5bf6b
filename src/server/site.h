// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/engine_thread.h"
#include "server/http/router.h"
#include "server/keys.h"
#include "server/openai/about.h"
#include "server/openai/fields.h"
#include "server/openai/generation_fields.h"
#include "server/options.h"
#include "server/origins.h"
#include "server/workers.h"

namespace winnow::server {

/// The routes of the server, and what they do. It outlives the connections, and the engine outlives it.
class Site : public HttpHandler {
 public:
  Site(std::shared_ptr<const Model> model, const ServerOptions& options, EngineThread& engine);

  std::vector<Header> headers_for(const HttpHead& head) const override { return origins_.headers_for(head); }
  bool answers_head(const HttpHead& head, HttpReply& reply) const override;
  void handle(HttpHead head, std::string body, std::shared_ptr<Responder> to) override;
  void finished() override { --active_; }
  HttpReply refusal(int status, const std::string& sentence) const override;

  /// No requests are taken any more.
  void drain() { health_ = Health::draining; }
  /// Ends the workers: from now on only the thread for HTTP is at work.
  void stop();
  /// Requests that are being answered.
  int active() const { return active_; }

 private:
  using TextRoute = HttpReply (*)(const Model&, Fields&, int);

  void add_now(const std::string& path, Access access, const std::function<HttpReply()>& reply);
  void add_text_route(const std::string& path, TextRoute route);
  void add_answers(const std::string& path, Surface surface);
  void add_missing(const std::string& method, const std::string& path);

  /// In a worker: from the body to the engine.
  void ask(Surface surface, const std::string& key, const std::string& body, const std::shared_ptr<Responder>& to);
  std::vector<Prompt> read_prompts_of(Surface surface, Fields& fields) const;
  /// Cuts an answer off where the context ends.
  int most_tokens(const std::vector<Prompt>& prompts, int wanted) const;
  /// Names fields that nobody reads, each once.
  void name_unknown(const Fields& fields);

  std::shared_ptr<const Model> model_;
  const ServerOptions& options_;
  EngineThread& engine_;
  int context_;
  std::int64_t started_;
  Keys keys_;
  Origins origins_;
  Router router_;
  Health health_ = Health::ok;
  int active_ = 0;
  std::mutex named_mutex_;
  std::set<std::string> named_;
  Workers workers_;  ///< the first to end: what they do uses all the rest
};

}  // namespace winnow::server
