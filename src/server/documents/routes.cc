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

constexpr int kDocumentWorkers = 2;
constexpr const char* kAll = "/v1/documents";
constexpr const char* kOne = "/v1/documents/{}";

std::string required(Fields& fields, const char* name) {
  auto out = fields.text(name);
  if (!out) throw FieldError(name, fmt::format("{} is missing: give a string", name));
  return std::move(*out);
}

/// Reads the document to add and its cache options: the full cache, unless the object `winnow` says otherwise.
std::pair<NewDocument, CacheOptions> read_body(const std::string& body, RequestShare& share) {
  const Json json = parse_counted(body, share);
  Fields fields(json);
  NewDocument out{required(fields, "name"), {}, {required(fields, "text")}};
  if (const Json* const tags = fields.list("tags")) {
    for (std::size_t i = 0; i < tags->size(); ++i) out.tags.push_back(text_at((*tags)[i], fmt::format("tags[{}]", i)));
  }
  CacheOptions keep;
  if (const Json* const object = fields.object("winnow")) {
    Fields inner(*object, "winnow.");
    keep = read_cache(inner, CacheChoice(), Protocol::agnostic);
    refuse_unknown(inner);
  }
  refuse_unknown(fields);
  return {std::move(out), keep};
}

/// Replies to the client when its document was added.
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

HttpReply list(Shelf& shelf, const std::string& /*name*/) {
  Json out{{"object", "list"}, {"data", Json::array()}};
  for (const auto& document : shelf.use([](const DocumentStore& store) { return store.list(); }))
    out["data"].push_back(documents::document_json(document));
  return {.body = text_of(out)};
}

HttpReply info(Shelf& shelf, const std::string& name) {
  const auto document = shelf.use([&](const DocumentStore& store) { return store.info(name); });
  return {.body = text_of(documents::document_json(document))};
}

HttpReply remove(Shelf& shelf, const std::string& name) {
  shelf.use([&](DocumentStore& store) { store.remove(std::span(&name, 1)); });
  return {.body = text_of({{"name", name}, {"deleted", true}})};
}

}  // namespace

DocumentRoutes::DocumentRoutes(DocumentsRoom room, const std::string& where)
    : room_(std::move(room)), workers_(kDocumentWorkers) {
  if (!where.empty()) shelf_.emplace(where);
}

void DocumentRoutes::add_to(Router& router) {
  add_now(router, "GET", kAll, list);
  add_now(router, "GET", kOne, info);
  add_now(router, "DELETE", kOne, remove);
  add(router, "POST", kAll, [this](Shelf& shelf, const Asked& asked) { add_document(shelf, asked); });
}

void DocumentRoutes::add(Router& router, const std::string& method, const std::string& path, Work work) {
  router.add({method, path, Access::key_holders,
              [this, work = std::move(work)](const HttpHead& head, HttpBody body, std::shared_ptr<Responder> to) {
                Asked asked{room_.asker_of(head), head.parameter, std::move(body), std::move(to)};
                workers_.post([this, work, asked = std::move(asked)] {
                  room_.answer(*asked.to, asked.asker, [&] { work(open_shelf(), asked); });
                });
              }});
}

void DocumentRoutes::add_now(Router& router, const std::string& method, const std::string& path, Reply reply) {
  add(router, method, path, [reply](Shelf& shelf, const Asked& asked) { asked.to->send(reply(shelf, asked.name)); });
}

Shelf& DocumentRoutes::open_shelf() {
  if (!shelf_) throw no_documents({});
  return *shelf_;
}

void DocumentRoutes::add_document(Shelf& shelf, const Asked& asked) {
  const auto share = std::make_shared<RequestShare>(room_.memory);
  const auto [document, keep] = read_body(asked.body.text(), *share);
  share->also_hold(bytes_of_tokenizing(document.text.text.size()));
  auto adding = std::make_unique<documents::Adding>(*room_.model, document, keep);
  if (!shelf.use([&](DocumentStore& store) { return adding->add_known(store.archive()); }))
    return read_document(shelf, asked, std::move(adding), keep, share);
  room_.observers.log.write({.path = asked.asker.path, .key = asked.asker.key_name});
  asked.to->send(Reporter::reply_of(adding->added()));
}

void DocumentRoutes::read_document(Shelf& shelf, const Asked& asked, std::unique_ptr<documents::Adding> adding,
                                   const CacheOptions& keep, std::shared_ptr<RequestShare> share) {
  const auto& asker = asked.asker;
  share->hold(bytes_of_tokens(adding->reading().tokens().size()));
  RequestRecord record{.path = asker.path, .id = new_id("doc-"), .key = asker.key_name};
  record.cost.spec = keep.spec.print();
  record.cost.budget = keep.budget ? keep.budget->print() : "";
  record.cost.prompt_tokens = static_cast<int>(adding->reading().tokens().size());
  const auto result = std::make_shared<AddingResult>();
  std::vector<Request> requests(1);
  requests.front().source = std::make_shared<AddingSource>(
      std::move(adding), shelf, [&engine = room_.engine] { engine.wake(); }, result);
  requests.front().keep = keep;
  requests.front().generate.max_tokens = 0;
  requests.front().key = asker.key;
  const auto ticket = room_.engine.new_ticket();
  const auto reporter = std::make_shared<Reporter>(result, holding(std::move(share), asked.to));
  room_.engine.add(ticket, std::move(requests), record.id,
                   std::make_shared<Observed>(reporter, room_.observers, record, asker.arrived,
                                              std::vector{record.cost.prompt_tokens}, 1));
  asked.to->on_gone([&engine = room_.engine, ticket, result] {
    if (!result->is_writing) engine.cancel(ticket);
  });
}

ApiError no_documents(const std::string& field) {
  return {501, "this server stores no documents: start it with --documents and a folder or redis://HOST", field};
}

}  // namespace winnow::server
