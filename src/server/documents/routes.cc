// SPDX-License-Identifier: Apache-2.0
#include "server/documents/routes.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "documents/document_json.h"
#include "server/documents/adding_source.h"
#include "server/openai/answer.h"
#include "server/openai/cache_fields.h"

namespace winnow::server {

namespace {

constexpr int kWorkers = 2;
constexpr const char* kAll = "/v1/documents";
constexpr const char* kOne = "/v1/documents/{}";

std::string required(Fields& fields, const char* name) {
  auto out = fields.text(name);
  if (!out) throw FieldError(name, fmt::format("{} is missing: give a text", name));
  return std::move(*out);
}

/// What is to be added, and how it is kept: as it is, unless the object `winnow` says otherwise.
std::pair<NewDocument, CacheOptions> read_document(const std::string& body) {
  const RequestJson json = parse_body(body);
  Fields fields(json);
  NewDocument out{required(fields, "name"), {}, {required(fields, "text")}};
  if (const RequestJson* const tags = fields.list("tags")) {
    for (std::size_t i = 0; i < tags->size(); ++i) out.tags.push_back(text_at((*tags)[i], fmt::format("tags[{}]", i)));
  }
  CacheOptions keep;
  if (const RequestJson* const object = fields.object("winnow")) {
    Fields inner(*object, "winnow.");
    keep = read_cache(inner, keep);
    refuse_unknown(inner);
  }
  refuse_unknown(fields);
  return {std::move(out), keep};
}

/// Tells the client what became of its document.
class Reporter : public AnswerListener {
 public:
  Reporter(std::shared_ptr<const AddingResult> result, std::shared_ptr<Responder> to)
      : result_(std::move(result)), to_(std::move(to)) {}

  void accepted() override {}
  void refused(std::exception_ptr why) override { to_->send(error_reply(why)); }
  void read(std::size_t /*prompt*/, const CacheStats& /*stats*/,
            std::shared_ptr<const KeptPositions> /*kept*/) override {}
  void token(std::size_t /*prompt*/, int /*answer*/, const GeneratedToken& /*token*/,
             const std::string& /*text*/) override {}
  void ended(std::size_t /*prompt*/, PromptEnd end) override {
    to_->send(end.error ? error_reply(late_error(end.error)) : reply_of(result_->added));
  }

  static HttpReply reply_of(const AddedDocument& added) { return {.body = text_of(documents::added_json(added))}; }

 private:
  std::shared_ptr<const AddingResult> result_;
  std::shared_ptr<Responder> to_;
};

}  // namespace

DocumentRoutes::DocumentRoutes(std::shared_ptr<const Model> model, const std::string& where, EngineThread& engine,
                               const Keys& keys)
    : model_(std::move(model)), engine_(engine), keys_(keys), shelf_(where), workers_(kWorkers) {}

void DocumentRoutes::post(const std::shared_ptr<Responder>& to, std::function<void()> action) {
  workers_.post([to, action = std::move(action)] {
    try {
      action();
    } catch (...) {
      to->send(error_reply(std::current_exception()));
    }
  });
}

void DocumentRoutes::add_to(Router& router) {
  add_now(router, "GET", kAll, [this](const std::string&) { return list(); });
  add_now(router, "GET", kOne, [this](const std::string& name) { return info(name); });
  add_now(router, "DELETE", kOne, [this](const std::string& name) { return remove(name); });
  router.add({"POST", kAll, Access::key_holders,
              [this](const HttpHead& head, std::string body, std::shared_ptr<Responder> to) {
                post(to,
                     [this, key = keys_.owner_of(head), body = std::move(body), to] { add_document(key, body, to); });
              }});
}

void DocumentRoutes::add_now(Router& router, const std::string& method, const std::string& path,
                             std::function<HttpReply(const std::string& name)> reply) {
  router.add({method, path, Access::key_holders,
              [this, reply = std::move(reply)](const HttpHead& head, const std::string&,
                                               const std::shared_ptr<Responder>& to) {
                post(to, [reply, name = head.parameter, to] { to->send(reply(name)); });
              }});
}

HttpReply DocumentRoutes::list() {
  Json out{{"object", "list"}, {"data", Json::array()}};
  for (const auto& document : shelf_.use([](const DocumentStore& store) { return store.list(); }))
    out["data"].push_back(documents::document_json(document));
  return {.body = text_of(out)};
}

HttpReply DocumentRoutes::info(const std::string& name) {
  const auto document = shelf_.use([&](const DocumentStore& store) { return store.info(name); });
  return {.body = text_of(documents::document_json(document))};
}

HttpReply DocumentRoutes::remove(const std::string& name) {
  shelf_.use([&](DocumentStore& store) { store.remove(std::span(&name, 1)); });
  return {.body = text_of({{"name", name}, {"deleted", true}})};
}

void DocumentRoutes::add_document(const std::string& key, const std::string& body,
                                  const std::shared_ptr<Responder>& to) {
  const auto [document, keep] = read_document(body);
  auto adding = std::make_unique<documents::Adding>(*model_, document, keep);
  if (shelf_.use([&](DocumentStore& store) { return adding->add_known(store.impl().archive); }))
    return to->send(Reporter::reply_of(adding->added()));
  const auto result = std::make_shared<AddingResult>();
  std::vector<Request> requests(1);
  requests.front().source = std::make_shared<AddingSource>(
      std::move(adding), shelf_, [this] { engine_.wake(); }, result);
  requests.front().keep = keep;
  requests.front().generate.max_tokens = 0;
  requests.front().key = key;
  const auto ticket = engine_.new_ticket();
  engine_.add(ticket, std::move(requests), new_id("doc"), std::make_shared<Reporter>(result, to));
  to->on_gone([this, ticket, result] {
    if (!result->is_writing) engine_.cancel(ticket);
  });
}

ApiError no_documents(const std::string& field) {
  return {501, "this server keeps no documents: start it with --documents and a folder or redis://HOST", field};
}

void add_absent_documents(Router& router) {
  for (const auto& [method, path] : {std::pair{"GET", kAll}, {"POST", kAll}, {"GET", kOne}, {"DELETE", kOne}}) {
    router.add({method, path, Access::key_holders,
                [](const HttpHead&, const std::string&, const std::shared_ptr<Responder>& to) {
                  to->send(error_reply(no_documents({})));
                }});
  }
}

}  // namespace winnow::server
