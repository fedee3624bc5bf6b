// SPDX-License-Identifier: Apache-2.0
#include "server/site.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/printable.h"
#include "server/conversations/conversation_routes.h"
#include "server/digest.h"
#include "server/kept/reply.h"
#include "server/openai/errors.h"
#include "server/openai/text_routes.h"
#include "server/page/page.h"

namespace winnow::server {

namespace {

constexpr int kWorkers = 2;

ApiError not_remembered(const std::string& id) {
  return {404, fmt::format("there are no kept positions of a request {}: it is unknown, not finished, too old, or its "
                           "method has no budget",
                           brief(id))};
}

std::vector<std::string> host_names(const ServerOptions& options) {
  auto out = options.names;
  out.push_back(options.host);
  return out;
}

}  // namespace

Site::Site(std::shared_ptr<const Model> model, const ServerOptions& options, EngineThread& engine, Post to_http)
    : served_(std::move(model), options),
      options_(options),
      engine_(engine),
      to_http_(std::move(to_http)),
      keys_(options.keys),
      hosts_(host_names(options)),
      origins_(options.origins),
      conversations_(options.conversations),
      memory_(std::make_shared<RequestMemory>(options.engine.request_memory)),
      metrics_(std::make_unique<Metrics>(served_.name, options.engine.scheduler.memory)),
      log_(std::make_unique<RequestLog>(options.log)),
      documents_({.model = served_.model,
                  .engine = engine_,
                  .memory = memory_,
                  .observers = {*metrics_, *log_},
                  .asker_of = [this](const HttpHead& head) { return asker_of(head); },
                  .answer = [this](Responder& to, const Asker& asker, const auto& work) { answer(to, asker, work); }},
                 options.documents),
      store_workers_(kWorkers),
      workers_(kWorkers) {
  prepare_digests();
  add_about();
  for (const auto& surface : surfaces()) add_answers(surface);
  add_text_route("/tokenize", tokenize_route);
  add_text_route("/detokenize", detokenize_route);
  add_text_route("/apply-template", apply_template_route);
  add_kept("/winnow/requests/{}/kept");
  add_conversations("/v1/sessions");
  add_embeddings();
  documents_.add_to(router_);
  asking_.emplace(
      AskingRoom{.model = served_.model,
                 .options = options_,
                 .engine = engine_,
                 .to_http = to_http_,
                 .model_name = served_.name,
                 .context = served_.context,
                 .observers = {*metrics_, *log_},
                 .memory = memory_,
                 .unknown = unknown_,
                 .finished = finished_,
                 .conversations = conversations_,
                 .shelf = documents_.shelf(),
                 .store_workers = store_workers_,
                 .answer = [this](Responder& to, const Asker& asker, const auto& work) { answer(to, asker, work); }});
}

void Site::add_embeddings() {
  embeddings_.emplace(EmbeddingRoom{
      .model = served_.model,
      .model_name = served_.name,
      .context = served_.context,
      .engine = engine_,
      .memory = memory_,
      .observers = {*metrics_, *log_},
      .unknown = unknown_,
      .workers = workers_,
      .asker_of = [this](const HttpHead& head) { return asker_of(head); },
      .answer = [this](Responder& to, const Asker& asker, const auto& work) { answer(to, asker, work); }});
  embeddings_->add_to(router_);
}

void Site::add_about() {
  add_now("/", Access::anybody, [](const HttpHead&) { return page_reply(); });
  for (const char* const path : {"/health", "/v1/health"})
    add_now(path, Access::anybody, [this](const HttpHead&) { return health_reply(health_); });
  for (const char* const path : {"/models", "/v1/models"})
    add_now(path, Access::key_holders, [this](const HttpHead&) { return models_reply(served_); });
  add_now("/v1/models/{}", Access::key_holders,
          [this](const HttpHead& head) { return model_reply(served_, head.parameter); });
  add_now("/slots", Access::key_holders, [this](const HttpHead&) { return slots_reply(engine_); });
  add_now("/props", Access::key_holders,
          [this](const HttpHead&) { return props_reply(served_, options_, engine_.threads()); });
  add_now("/metrics", Access::key_holders, [this](const HttpHead&) {
    return HttpReply{.body = metrics_->text(engine_.load()), .type = "text/plain; version=0.0.4; charset=utf-8"};
  });
  add_now("/tokenizer_info", Access::key_holders, [this](const HttpHead&) { return tokenizer_info(*served_.model); });
}

void Site::add_now(const std::string& path, Access access, const std::function<HttpReply(const HttpHead&)>& reply) {
  router_.add(
      {"GET", path, access, [this, reply](const HttpHead& head, const HttpBody&, const std::shared_ptr<Responder>& to) {
         answer(*to, asker_of(head), [&] { to->send(reply(head)); });
       }});
}

void Site::add_text_route(const std::string& path, TextRoute route) {
  router_.add({"POST", path, Access::key_holders,
               [this, route](const HttpHead& head, HttpBody body, std::shared_ptr<Responder> to) {
                 workers_.post([this, route, asker = asker_of(head), body = std::move(body), to = std::move(to)] {
                   answer(*to, asker, [&] {
                     RequestShare share(memory_);
                     const Json json = parse_counted(body.text(), share);
                     share.also_hold(bytes_of_tokenizing(body.text().size()));
                     Fields fields(json);
                     to->send(route(fields, {*served_.model, options_.defaults, served_.context}));
                   });
                 });
               }});
}

void Site::add_answers(const Surface& surface) {
  for (const auto& path : surface.paths) {
    router_.add({"POST", path, Access::key_holders,
                 [this, &surface](const HttpHead& head, HttpBody body, std::shared_ptr<Responder> to) {
                   workers_.post([this, &surface, asker = asker_of(head), body = std::move(body), to = std::move(to)] {
                     answer(*to, asker, [&] { asking_->ask(surface, asker, body.text(), to); });
                   });
                 }});
  }
  for (const auto& [path, route] : surface.text_routes) add_text_route(path, route);
}

void Site::add_kept(const std::string& path) {
  router_.add({"GET", path, Access::key_holders,
               [this](const HttpHead& head, const HttpBody&, const std::shared_ptr<Responder>& to) {
                 const auto asker = asker_of(head);
                 const auto found = finished_.find(head.parameter, asker.key);
                 workers_.post([this, found, to, asker, id = head.parameter] {
                   answer(*to, asker, [&] {
                     if (!found) throw not_remembered(id);
                     to->send(kept_reply(*served_.model, *found));
                   });
                 });
               }});
}

void Site::add_conversations(const std::string& path) {
  const auto add = [this](const std::string& method, const std::string& at, auto reply) {
    router_.add(
        {method, at, Access::key_holders,
         [this, reply](const HttpHead& head, const HttpBody&, const std::shared_ptr<Responder>& to) {
           store_workers_.post([this, reply, asker = asker_of(head), name = head.parameter, to] {
             answer(*to, asker, [&] { to->send(reply(conversations_.store(), ConversationKey{asker.key, name})); });
           });
         }});
  };
  add("GET", path,
      [](const ConversationStore& store, const ConversationKey& key) { return conversations_reply(store, key.owner); });
  add("GET", path + "/{}", conversation_reply);
  add("DELETE", path + "/{}", remove_conversation);
}

Asker Site::asker_of(const HttpHead& head) const {
  return {head.path, keys_.owner_of(head), keys_.name_of(head), Clock::now(),
          std::string(head.header("winnow-session"))};
}

HttpReply Site::refused(const std::exception_ptr& why, const Asker& asker) const {
  HttpReply reply = error_under(asker.path, why);
  metrics_->rejected(reason_of(why));
  RequestRecord record{.path = asker.path, .key = asker.key_name, .status = reply.status, .reason = reason_of(why)};
  if (reply.status >= 500) record.message = sentence_of(why);
  log_->write(record);
  return reply;
}

void Site::answer(Responder& to, const Asker& asker, const std::function<void()>& work) const {
  try {
    work();
  } catch (...) {
    to.send(refused(std::current_exception(), asker));
  }
}

bool Site::answers_head(const HttpHead& head, HttpReply& reply) const {
  const auto refuse = [&](int status, const std::string& sentence) {
    reply = refused(std::make_exception_ptr(ApiError(status, sentence)), asker_of(head));
    return true;
  };
  if (!hosts_.allow(head))
    return refuse(403, fmt::format("this server does not answer to the name {}: allow it with --allowed-host",
                                   brief(host_of(head.header("host")))));
  if (!origins_.allow(head))
    return refuse(403, fmt::format("web pages of {} may not use this server: allow them with --cors-origin",
                                   brief(head.header("origin"))));
  const std::string methods = router_.methods_of(head.path);
  if (methods.empty()) return refuse(404, fmt::format("there is no {}", brief(head.path)));
  if (head.method == "OPTIONS") {
    reply = Origins::preflight(head);
    return true;
  }
  const Route* const route = router_.find(head.method, head.path);
  if (route == nullptr) {
    refuse(405, fmt::format("{} takes {}, not {}", head.path, methods, brief(head.method)));
    reply.headers.emplace_back("Allow", methods);
    return true;
  }
  if (route->access == Access::anybody) return false;
  if (!keys_.allow(head)) {
    refuse(401, "an API key is needed: send it as Authorization: Bearer KEY or X-Api-Key: KEY");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return true;
  }
  if (health_ == Health::ok || head.method == "GET" || head.method == "HEAD") return false;
  reply = refused(std::make_exception_ptr(ShuttingDown()), asker_of(head));
  return true;
}

bool Site::takes_body(const HttpHead& head) const { return router_.find(head.method, head.path)->takes_body(); }

void Site::handle(HttpHead head, HttpBody body, std::shared_ptr<Responder> to) {
  ++active_;
  const Route& route = *router_.find(head.method, head.path);
  auto parameter = parameter_of(route, head.path);
  if (!parameter)
    return answer(*to, asker_of(head), [&head] {
      throw ApiError(400, fmt::format("{} is not percent-encoded as a path must be", brief(head.path)));
    });
  head.parameter = std::move(*parameter);
  route.handler(head, std::move(body), std::move(to));
}

HttpReply Site::refusal(int status, const std::string& sentence, const std::string& path) const {
  Asker nobody;
  nobody.path = path;
  return refused(std::make_exception_ptr(ApiError(status, sentence)), nobody);
}

void Site::request_stop() {
  workers_.request_stop();
  store_workers_.request_stop();
  documents_.request_stop();
}

void Site::stop() {
  workers_.stop();
  store_workers_.stop();
  documents_.stop();
}

}  // namespace winnow::server
