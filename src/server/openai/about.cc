// SPDX-License-Identifier: Apache-2.0
#include "server/openai/about.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"
#include "server/openai/field_limits.h"
#include "winnow/methods.h"
#include "winnow/policy/method.h"
#include "winnow/recommended.h"
#include "winnow/version.h"

namespace winnow::server {

namespace {

const char* phase_name(RequestState::Phase phase) {
  switch (phase) {
    case RequestState::Phase::waiting:
      return "waiting";
    case RequestState::Phase::reading:
      return "reading";
    case RequestState::Phase::paused:
      return "paused";
    case RequestState::Phase::answering:
      break;
  }
  return "answering";
}

Json slot_json(const EngineState& slot) {
  const RequestState& s = slot.state;
  return {{"id", slot.request},
          {"is_processing", s.phase != RequestState::Phase::waiting},
          {"phase", phase_name(s.phase)},
          {"prompt_tokens", s.prompt_tokens},
          {"prompt_read", s.read},
          {"completion_tokens", s.generated},
          {"spec", slot.spec},
          {"budget", text_or_null(slot.budget)},
          {"bytes_promised", s.bytes_promised},
          {"bytes_held", s.bytes_held}};
}

Json generation_json(const GenerateOptions& generate) {
  const auto& s = generate.sampling;
  return {{"max_tokens", generate.max_tokens},
          {"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"repetition_penalty", s.repeat_penalty},
          {"stop", generate.stop}};
}

Json keeping_field(const RequestDefaults& defaults) {
  const CacheChoice& keep = defaults.keep;
  return {{"kv", keep.method_name()},
          {"budget", keep.budget ? Json(keep.budget->print()) : Json(nullptr)},
          {"kv_type", keep.with(defaults.protocol).kv_type.print()},
          {"protocol", defaults.protocol == Protocol::aware ? "question-aware" : "question-agnostic"}};
}

/// The methods, beginning with the recommended ones and the specs that they stand for.
Json methods_json() {
  Json out = Json::array();
  for (const auto& method : describe_recommended()) {
    Json specs = Json::object();
    for (const auto& part : method.parts) specs[part.place] = part.text;
    out.push_back({{"name", method.name}, {"summary", method.summary}, {"needs_budget", true}, {"specs", specs}});
  }
  for (const auto& method : list_methods())
    out.push_back({{"name", method.name},
                   {"summary", method.summary},
                   {"needs_budget", Spec::parse(method.name).method().needs_budget()}});
  return out;
}

/// The limits of fields; null for fields without one of their own.
Json field_limits_json() {
  Json out = Json::array();
  for (const auto& limit : field_limits())
    out.push_back({{"field", limit.field},
                   {"unit", name_of(limit.unit)},
                   {"most", limit.most == kWholeBody ? Json(nullptr) : Json(limit.most)}});
  return out;
}

Json model_json(const ServedModel& served) {
  const ModelInfo& info = served.model->info();
  const Json meta{{"n_ctx", served.context},        {"n_ctx_train", info.ctx_train}, {"n_params", info.n_params},
                  {"n_embd", info.n_embd},          {"n_layer", info.n_layer},       {"n_vocab", info.n_vocab},
                  {"size", info.weight_bytes},      {"architecture", info.arch},     {"name", info.name},
                  {"weight_type", info.weight_type}};
  return {{"id", served.name},
          {"object", "model"},
          {"created", served.started},
          {"owned_by", "winnow"},
          {"max_model_len", served.context},
          {"meta", meta}};
}

}  // namespace

ServedModel::ServedModel(std::shared_ptr<const Model> of, const ServerOptions& options)
    : model(std::move(of)),
      name(options.alias.empty() ? std::filesystem::path(model->info().path).stem().string() : options.alias),
      context(options.defaults.context > 0 ? options.defaults.context : model->info().context),
      started(seconds_since_1970()) {}

HttpReply health_reply(Health health) {
  if (health == Health::draining) return error_reply(std::make_exception_ptr(ShuttingDown()));
  return {.body = R"({"status":"ok"})"};
}

HttpReply models_reply(const ServedModel& served) {
  return {.body = text_of({{"object", "list"}, {"data", Json::array({model_json(served)})}})};
}

HttpReply model_reply(const ServedModel& served, const std::string& name) {
  if (name != served.name)
    throw ApiError(404, fmt::format("there is no model {}: this server has {}", brief(name), served.name));
  return {.body = text_of(model_json(served))};
}

HttpReply slots_reply(const EngineThread& engine) {
  Json out = Json::array();
  for (const auto& state : engine.states()) out.push_back(slot_json(state));
  return {.body = text_of(out)};
}

HttpReply props_reply(const ServedModel& served, const ServerOptions& options, int threads) {
  const auto& scheduler = options.engine.scheduler;
  const bool limited = scheduler.memory != std::numeric_limits<std::size_t>::max();
  Json defaults = generation_json(options.defaults.generate);
  defaults["winnow"] = keeping_field(options.defaults);
  return {.body = text_of({{"model", served.name},
                           {"n_ctx", served.context},
                           {"total_slots", scheduler.parallel},
                           {"max_queue_requests", options.engine.waiting},
                           {"max_itl_ms", scheduler.max_itl.count()},
                           {"memory", limited ? Json(scheduler.memory) : Json(nullptr)},
                           {"prefix_memory", scheduler.texts.memory},
                           {"request_memory", options.engine.request_memory},
                           {"threads", threads},
                           {"field_limits", field_limits_json()},
                           {"default_generation_settings", defaults},
                           {"methods", methods_json()},
                           {"chat_template", text_or_null(served.model->vocab().chat_template())},
                           {"chat_template_tool_use", text_or_null(served.model->vocab().tool_use_template())},
                           {"build_info", std::string("winnow ") + kVersion}})};
}

}  // namespace winnow::server
