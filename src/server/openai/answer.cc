// SPDX-License-Identifier: Apache-2.0
#include "server/openai/answer.h"

#include <spdlog/fmt/fmt.h>

#include <random>

namespace winnow::server {

namespace {

double per(double amount, double count) { return count > 0 ? amount / count : 0; }

}  // namespace

std::string new_id(const std::string& prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}", prefix, random());
}

const char* finish_name(FinishReason reason) { return reason == FinishReason::length ? "length" : "stop"; }

Json usage_json(const AnswerCost& cost) {
  return {{"prompt_tokens", cost.prompt_tokens},
          {"completion_tokens", cost.answer_tokens},
          {"total_tokens", cost.prompt_tokens + cost.answer_tokens},
          {"prompt_tokens_details", {{"cached_tokens", cost.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", cost.reasoning_tokens}}}};
}

Json keeping_json(const AnswerCost& cost) {
  Json out{{"spec", cost.spec},
           {"budget", text_or_null(cost.budget)},
           {"entries_per_head", cost.entries_per_head},
           {"bytes_held", cost.bytes_held},
           {"bytes_full", cost.bytes_full}};
  if (cost.max_tokens < cost.asked_tokens) {
    out["max_tokens"] = cost.max_tokens;
    out["max_tokens_lowered_by"] = cost.max_tokens < cost.context_tokens ? "memory" : "context";
  }
  return out;
}

Json timings_json(const AnswerCost& cost) {
  const int read = cost.prompt_tokens - cost.cached_tokens;
  return {{"cache_n", cost.cached_tokens},
          {"queue_ms", cost.queue_ms},
          {"prompt_n", read},
          {"prompt_ms", cost.read_ms},
          {"prompt_per_token_ms", per(cost.read_ms, read)},
          {"prompt_per_second", per(1000.0 * read, cost.read_ms)},
          {"predicted_n", cost.answer_tokens},
          {"predicted_ms", cost.answer_ms},
          {"predicted_per_token_ms", per(cost.answer_ms, cost.answer_steps)},
          {"predicted_per_second", per(1000.0 * cost.answer_steps, cost.answer_ms)}};
}

Json head_json(const AnswerHead& head, const char* object) {
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

std::string event(const Json& json) { return "data: " + text_of(json) + "\n\n"; }

std::string named_event(const Json& json) {
  return fmt::format("event: {}\n{}", json.at("type").get_ref<const std::string&>(), event(json));
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace winnow::server
