// SPDX-License-Identifier: Apache-2.0
#include "cli/run/report.h"

#include <ggml.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/format.h"
#include "base/process_memory.h"
#include "cli/wording.h"
#include "winnow/version.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

Json model_json(const ModelInfo& m) {
  return {{"path", m.path},         {"arch", m.arch},           {"name", m.name},
          {"n_layer", m.n_layer},   {"n_head", m.n_head},       {"n_head_kv", m.n_head_kv},
          {"head_dim", m.head_dim}, {"ctx_train", m.ctx_train}, {"weight_type", m.weight_type}};
}

Json cache_json(const CacheStats& stats, const MemoryUse& memory) {
  return {{"entries_per_head_mean", stats.entries_per_head_mean},
          {"entries_min", stats.entries_min},
          {"entries_max", stats.entries_max},
          {"attended_per_head_mean", stats.attended_per_head_mean},
          {"bytes_held", stats.bytes_held},
          {"bytes_full", stats.bytes_full},
          {"peak_bytes", memory.peak},
          {"rss_peak_bytes", peak_resident_bytes()}};
}

Json logprobs_json(const Generation& generation, const Model& model) {
  Json out = Json::array();
  const auto one = [&](const TokenLogprob& t) {
    return Json{{"id", t.id}, {"token", model.vocab().text(t.id)}, {"logprob", t.logprob}};
  };
  for (const auto& token : generation.logprobs) {
    Json entry = one(token.chosen);
    entry["top"] = Json::array();
    for (const auto& other : token.top) entry["top"].push_back(one(other));
    out.push_back(std::move(entry));
  }
  return out;
}

Json answer_json(const RunOptions& options, const Model& model, const Answer& a) {
  Json out{{"answer", a.message.content},
           {"finish_reason", name_of(a.generation.finish)},
           {"tokens", {{"prompt", a.prompt_tokens}, {"generated", a.generation.tokens.size()}}},
           {"cache", cache_json(a.after_prefill, a.memory_after_prefill)},
           {"cache_end", cache_json(a.at_end, a.memory_at_end)},
           {"timings",
            {{"prefill_ms", a.prefill_ms},
             {"prefill_tokens_per_second", per_second(a.read_tokens, a.prefill_ms)},
             {"time_to_first_token_ms", a.first_token_ms},
             {"decode_ms", a.decode_ms},
             {"decode_tokens_per_second", per_second(a.decoded(), a.decode_ms)}}}};
  if (!options.texts.options.place.empty()) out["cached_tokens"] = a.cached_tokens;
  if (!a.message.reasoning.empty()) out["reasoning"] = a.message.reasoning;
  if (options.generate.logprobs > 0) out["logprobs"] = logprobs_json(a.generation, model);
  return out;
}

/// The kept share of a prompt, in words.
std::string kept_words(const CacheStats& stats, int prompt) {
  if (stats.entries_min >= prompt) return fmt::format("all {} kept", counted(prompt, "token"));
  if (stats.entries_min == stats.entries_max)
    return fmt::format("{} of {} kept in each head", stats.entries_min, counted(prompt, "token"));
  return fmt::format("{:.0f} of {} kept per head, {} to {} by head", stats.entries_per_head_mean,
                     counted(prompt, "token"), stats.entries_min, stats.entries_max);
}

}  // namespace

Json record(const RunOptions& options, const Session& session, const std::vector<Answer>& answers, double load_ms) {
  Json out{{"model", model_json(session.model().info())},
           {"spec", options.cache.spec.print()},
           {"spec_full", options.cache.spec.print_full()},
           {"budget", options.cache.budget ? Json(options.cache.budget->print()) : Json(nullptr)},
           {"kv_type", options.cache.kv_type.print()},
           {"protocol", options.protocol == Protocol::aware ? "question-aware" : "question-agnostic"}};
  if (answers.size() == 1) {
    out.update(answer_json(options, session.model(), answers.front()));
    out["timings"]["load_ms"] = load_ms;
  } else {
    out["answers"] = Json::array();
    for (const auto& a : answers) {
      Json one = answer_json(options, session.model(), a);
      one["question"] = a.question;
      one["timings"]["load_ms"] = load_ms;
      out["answers"].push_back(std::move(one));
    }
  }
  out["system"] = {{"threads", session.threads()},
                   {"isa", instruction_set()},
                   {"version", kVersion},
                   {"ggml", ggml_version_text()},
                   {"build", kBuildType}};
  return out;
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string forecast_lines(const Forecast& told, std::int64_t tokens, std::size_t process) {
  const std::string again =
      told.rows > tokens ? fmt::format(", {} with further passes and repetitions", told.rows) : "";
  return fmt::format(
      "reads {}{}\n"
      "at most {} at the peak, about {} with the weights\n"
      "{:.1f} s or more until the answer, because the first {} took {:.2f} s\n",
      counted(tokens, "token"), again, format_bytes(told.peak_bytes), format_bytes(process), told.read_ms() / 1000,
      counted(told.measured_tokens, "token"), told.measured_ms / 1000);
}

std::string summary(const RunOptions& options, const Answer& a, double load_ms) {
  const auto& c = a.after_prefill;
  return fmt::format(
      "{}, {} in place of the full cache's {} ({:.1f} %), {} at the peak, {} with the weights\n"
      "load {:.0f} ms · prefill {} {:.0f} t/s · first token {:.0f} ms · decode {} {:.1f} t/s · {}{}\n",
      kept_words(c, a.prompt_tokens), format_bytes(c.bytes_held), format_bytes(c.bytes_full),
      c.bytes_full > 0 ? 100.0 * static_cast<double>(c.bytes_held) / static_cast<double>(c.bytes_full) : 0.0,
      format_bytes(a.memory_at_end.peak), format_bytes(peak_resident_bytes()), load_ms, counted(a.read_tokens, "token"),
      per_second(a.read_tokens, a.prefill_ms), a.first_token_ms, counted(a.generation.tokens.size(), "token"),
      per_second(a.decoded(), a.decode_ms), options.cache.spec.print(),
      options.cache.budget ? " @ " + options.cache.budget->print() : "");
}

std::string saved_line(const std::string& path, std::size_t bytes, const CacheStats& stats) {
  return fmt::format("saved {}: {}, {:.0f} of {} per head ({} to {})\n", path, format_bytes(bytes),
                     stats.entries_per_head_mean, counted(stats.tokens_seen, "token"), stats.entries_min,
                     stats.entries_max);
}

std::string kept_json(const ModelInfo& model, const Cache& cache, int prompt_tokens, const TextIdentity& text) {
  Json out{{"spec", cache.options().spec.print()},
           {"n_prompt", prompt_tokens},
           {"text_tokens", text.tokens},
           {"text_hash", text.hash},
           {"layers", cache.kept()}};
  if (model.window() > 0) {
    for (const auto& layer : model.layers) out["windows"].push_back(layer.window);
  }
  return out.dump() + "\n";
}

std::string instruction_set() {
  const auto targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);  // the lowest bit is the best target
}

std::string ggml_version_text() { return fmt::format("{} {}", ggml_version(), ggml_commit()); }

}  // namespace winnow::cli
