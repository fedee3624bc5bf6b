// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/answers/surface.h"
#include "server/answers/written.h"
#include "server/asker.h"
#include "server/conversations/conversations.h"
#include "server/documents/questions.h"
#include "server/documents/shelf.h"
#include "server/engine_thread.h"
#include "server/kept/finished.h"
#include "server/metrics/observed.h"
#include "server/openai/fields.h"
#include "server/openai/unknown_fields.h"
#include "server/options.h"
#include "server/post.h"
#include "server/request_memory.h"
#include "server/workers.h"

namespace winnow::server {

/// Parts of the server that requests for answers need; all outlive Asking.
struct AskingRoom {
  std::shared_ptr<const Model> model;
  const ServerOptions& options;
  EngineThread& engine;
  Post to_http;
  const std::string& model_name;
  int context;  ///< tokens
  Observers observers;
  std::shared_ptr<RequestMemory> memory;
  UnknownFields& unknown;
  FinishedRequests& finished;
  Conversations& conversations;
  Shelf* shelf;            ///< null: the server has no documents
  Workers& store_workers;  ///< workers that may block on a store
  /// Calls a function for a request, and replies with an error if it throws.
  std::function<void(Responder&, const Asker&, const std::function<void()>&)> answer;
};

/// Takes a request for an answer from its body to the engine.
class Asking {
 public:
  explicit Asking(AskingRoom room) : room_(std::move(room)) {}

  /// Called in a worker. Work that needs a store continues in one of `store_workers`. Throws ApiError and others.
  void ask(const Surface& surface, const Asker& asker, const std::string& body, const std::shared_ptr<Responder>& to);

 private:
  struct Asked;

  /// Opens the request's stored conversation and documents.
  void open(Asked& asked);
  Documents open_documents(DocumentStore& store, const std::vector<std::string>& names) const;
  void go_on(Asked& asked);
  std::vector<StagedPrompt> tokens_of(Asked& asked) const;
  StagedPrompt tokens_of(Asked& asked, AskedConversation& conversation) const;
  std::vector<StagedPrompt> tokens_of(Asked& asked, const PromptsRequest& request) const;
  void put_after_documents(Asked& asked, std::vector<StagedPrompt>& prompts) const;
  /// Limits the lengths of answers to the rest of the context.
  void limit_answers(Asked& asked, const std::vector<StagedPrompt>& prompts) const;
  Request request_for(const Asked& asked, StagedPrompt prompt) const;
  std::shared_ptr<AnswerListener> listener_of(Asked& asked, const AnswerPlan& plan, EngineThread::Ticket ticket,
                                              const std::shared_ptr<FinishedRequest>& finished);
  /// Logs keywords of schemas that the grammar does not enforce.
  void name_left_out(const std::set<std::string>& keywords) const;
  /// Logs fields of a request that are not known.
  void name_unknown(const Asked& asked);

  AskingRoom room_;
};

}  // namespace winnow::server
