// SPDX-License-Identifier: Apache-2.0
#include "server/site.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "base/as_size.h"
#include "base/log.h"
#include "base/printable.h"
#include "engine/model_impl.h"
#include "server/openai/answering.h"
#include "server/openai/cache_fields.h"
#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/openai/errors.h"
#include "server/openai/text_routes.h"

namespace winnow::server {

namespace {

constexpr int kWorkers = 2;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What the model was trained with, as RoPE's scaling widens it.
int context_of(const Model& model, int wanted) {
  if (wanted > 0) return wanted;
  const auto& hparams = model.impl().weights->hparams();
  return static_cast<int>(static_cast<float>(hparams.ctx_train) / hparams.kinds.front().rope_freq_scale);
}

std::string new_id(Surface surface) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}-{:016x}", surface == Surface::chat ? "chatcmpl" : "cmpl", random());
}

/// Calls what may throw for a request; an error is its answer.
void answer_with(Responder& to, const std::function<HttpReply()>& make) {
  try {
    to.send(make());
  } catch (...) {
    to.send(error_reply(std::current_exception()));
  }
}

std::size_t size_of(const Prompt& prompt) { return prompt.text.size() + prompt.question.size(); }

}  // namespace

Site::Site(std::shared_ptr<const Model> model, const ServerOptions& options, EngineThread& engine)
    : model_(std::move(model)),
      options_(options),
      engine_(engine),
      context_(context_of(*model_, options.defaults.context)),
      started_(seconds_now()),
      keys_(options.keys),
      origins_(options.origins),
      workers_(kWorkers) {
  for (const char* const path : {"/health", "/v1/health"})
    add_now(path, Access::anybody, [this] { return health_reply(health_); });
  for (const char* const path : {"/models", "/v1/models"})
    add_now(path, Access::key_holders, [this] { return models_reply(*model_, context_, started_); });
  add_now("/slots", Access::key_holders, [this] { return slots_reply(engine_); });
  add_now("/props", Access::key_holders,
          [this] { return props_reply(*model_, options_, context_, engine_.threads()); });
  add_now("/tokenizer_info", Access::key_holders, [this] { return tokenizer_info(*model_); });
  for (const std::string prefix : {"", "/v1"}) {
    add_answers(prefix + "/chat/completions", Surface::chat);
    add_answers(prefix + "/completions", Surface::completion);
  }
  add_text_route("/tokenize", tokenize_route);
  add_text_route("/detokenize", detokenize_route);
  add_text_route("/apply-template", apply_template_route);
  for (const char* const path : {"/", "/metrics", "/v1/documents"}) add_missing("GET", path);
  add_missing("POST", "/v1/documents");
}

void Site::add_now(const std::string& path, Access access, const std::function<HttpReply()>& reply) {
  router_.add({"GET", path, access, [reply](const HttpHead&, const std::string&, const std::shared_ptr<Responder>& to) {
                 to->send(reply());
               }});
}

void Site::add_text_route(const std::string& path, TextRoute route) {
  router_.add({"POST", path, Access::key_holders,
               [this, route](const HttpHead&, std::string body, std::shared_ptr<Responder> to) {
                 workers_.post([this, route, body = std::move(body), to = std::move(to)] {
                   answer_with(*to, [&] {
                     const RequestJson json = parse_body(body);
                     Fields fields(json);
                     return route(*model_, fields, context_);
                   });
                 });
               }});
}

void Site::add_answers(const std::string& path, Surface surface) {
  router_.add({"POST", path, Access::key_holders,
               [this, surface](const HttpHead& head, std::string body, std::shared_ptr<Responder> to) {
                 const std::string key = options_.keys.empty() ? "" : std::string(Keys::key_of(head));
                 workers_.post([this, surface, key, body = std::move(body), to = std::move(to)] {
                   try {
                     ask(surface, key, body, to);
                   } catch (...) {
                     to->send(error_reply(std::current_exception()));
                   }
                 });
               }});
}

void Site::add_missing(const std::string& method, const std::string& path) {
  router_.add({method, path, Access::key_holders,
               [path](const HttpHead&, const std::string&, const std::shared_ptr<Responder>& to) {
                 to->send(error_reply(ApiError(501, fmt::format("{} is not implemented", path))));
               }});
}

bool Site::answers_head(const HttpHead& head, HttpReply& reply) const {
  const auto refuse = [&reply](int status, const std::string& sentence) {
    reply = error_reply(ApiError(status, sentence));
    return true;
  };
  if (!origins_.allow(head))
    return refuse(403, fmt::format("pages of {} may not use this server: allow them with --cors-origin",
                                   brief(head.header("origin"))));
  const std::string methods = router_.methods_of(head.path);
  if (methods.empty()) return refuse(404, fmt::format("there is no {}", brief(head.path)));
  if (head.method == "OPTIONS") {
    reply = Origins::preflight();
    return true;
  }
  const Route* const route = router_.find(head.method, head.path);
  if (route == nullptr) {
    refuse(405, fmt::format("{} takes {}, and not {}", head.path, methods, brief(head.method)));
    reply.headers.emplace_back("Allow", methods);
    return true;
  }
  if (route->access == Access::anybody) return false;
  if (!keys_.allow(head)) {
    refuse(401, "a key is needed: send it as Authorization: Bearer KEY, or as X-Api-Key");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return true;
  }
  if (health_ == Health::ok || head.method == "GET" || head.method == "HEAD") return false;
  reply = error_reply(std::make_exception_ptr(ShuttingDown()));
  return true;
}

void Site::handle(HttpHead head, std::string body, std::shared_ptr<Responder> to) {
  ++active_;
  router_.find(head.method, head.path)->handler(head, std::move(body), std::move(to));
}

HttpReply Site::refusal(int status, const std::string& sentence) const {
  return error_reply(ApiError(status, sentence));
}

void Site::stop() { workers_.stop(); }

std::vector<Prompt> Site::read_prompts_of(Surface surface, Fields& fields) const {
  const char* const name = surface == Surface::chat ? "messages" : "prompt";
  std::vector<Prompt> out;
  if (surface == Surface::completion) {
    out = read_prompts(fields, *model_, context_);
  } else {
    const ChatPrompt chat = read_chat(fields);
    check_context(*model_, chat.size(), context_, name);
    out.push_back(tokenize(*model_, chat, options_.defaults.control));
  }
  for (const auto& prompt : out) check_context(size_of(prompt), context_, name);
  return out;
}

int Site::most_tokens(const std::vector<Prompt>& prompts, int wanted) const {
  for (const auto& prompt : prompts) wanted = std::min(wanted, context_ - static_cast<int>(size_of(prompt)));
  return wanted;
}

void Site::ask(Surface surface, const std::string& key, const std::string& body, const std::shared_ptr<Responder>& to) {
  const RequestJson json = parse_body(body);
  Fields fields(json);
  AnswerPlan plan{read_form(fields, surface), {new_id(surface), seconds_now(), name_of(*model_)}, {}, {}};
  const Keeping keeping = read_keeping(fields, options_.defaults);
  GenerateOptions generate = read_generation(fields, plan.form, options_.defaults, model_->info());
  auto prompts = read_prompts_of(surface, fields);
  name_unknown(fields);
  generate.max_tokens = most_tokens(prompts, generate.max_tokens);
  generate.min_tokens = std::min(generate.min_tokens, generate.max_tokens);
  plan.cost.spec = keeping.keep.spec.print();
  plan.cost.budget = keeping.keep.budget ? keeping.keep.budget->print() : "";
  std::vector<Request> requests;
  for (auto& prompt : prompts) {
    plan.prompt_tokens.push_back(static_cast<int>(size_of(prompt)));
    plan.cost.prompt_tokens += plan.prompt_tokens.back();
    if (plan.form.echo) plan.echoed.push_back(prompt.text);
    requests.push_back(request_of(std::move(prompt), keeping.protocol));
    if (plan.form.echo && plan.form.alternatives)
      requests.back().prompt_logprobs = std::max(1, *plan.form.alternatives);
    if (!requests.back().question.empty()) requests.back().cache_salt = plan.form.cache_salt.value_or(key);
    requests.back().keep = keeping.keep;
    requests.back().generate = generate;
    requests.back().answers = plan.form.answers;
    requests.back().key = key;
    requests.back().priority = plan.form.priority;
  }
  const std::string id = plan.head.id;
  const auto answering = std::make_shared<Answering>(model_, std::move(plan), to);
  const auto ticket = engine_.new_ticket();
  const auto cancel = [this, ticket] { engine_.cancel(ticket); };
  answering->on_failure(cancel);
  engine_.add(ticket, std::move(requests), id, answering);
  to->on_gone(cancel);
}

void Site::name_unknown(const Fields& fields) {
  constexpr std::size_t kMostNamed = 100;
  for (const auto& name : fields.unread()) {
    const std::lock_guard lock(named_mutex_);
    if (named_.size() < kMostNamed && named_.insert(brief(name)).second)
      log().info("the field {} of requests is not known, and ignored", brief(name));
  }
}

}  // namespace winnow::server
