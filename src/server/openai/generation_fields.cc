// SPDX-License-Identifier: Apache-2.0
#include "server/openai/generation_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "base/printable.h"
#include "server/openai/errors.h"
#include "server/openai/missing_fields.h"

namespace winnow::server {

namespace {

constexpr int kMostTokens = std::numeric_limits<int>::max();
constexpr int kMostAnswers = 128;
constexpr int kMostAlternatives = 20;

std::optional<int> count_of(std::optional<std::int64_t> count) {
  return count ? std::optional(static_cast<int>(*count)) : std::nullopt;
}

/// In chats `logprobs` is a switch; in completions it is the number of alternatives.
std::optional<int> read_chat_alternatives(Fields& fields) {
  const bool asked = fields.is_set("logprobs");
  const auto count = count_of(fields.integer("top_logprobs", 0, kMostAlternatives));
  if (count.value_or(0) > 0 && !asked) throw FieldError("top_logprobs", "top_logprobs needs logprobs: set it to true");
  return asked ? std::optional(count.value_or(0)) : std::nullopt;
}

void read_stream(Fields& fields, AnswerForm& form) {
  form.stream = fields.is_set("stream");
  const Json* const options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!form.stream) throw FieldError("stream_options", "stream_options needs stream: set it to true");
  Fields inner(*options, "stream_options.");
  form.usage_at_end = inner.is_set("include_usage");
  form.usage_in_chunks = inner.is_set("continuous_usage_stats");
  inner.boolean("include_obfuscation");  // there is none here
}

/// Refuses the old names of `tools` and `tool_choice`.
void refuse_functions(Fields& fields) {
  const Json* const functions = fields.list("functions");
  if (functions != nullptr && !functions->empty())
    throw NotImplemented("functions", "functions is not implemented: use tools and tool_choice");
  const Json* const call = fields.any("function_call");
  if (call != nullptr && call->is_object())
    throw NotImplemented("function_call", "function_call is not implemented: use tools and tool_choice");
  fields.word("function_call", {"none", "auto"});
}

void refuse_suffix_and_tools(Fields& fields) {
  if (fields.text("suffix")) throw NotImplemented("suffix", "suffix is not implemented: leave it out");
  const Json* const tools = fields.list("tools");
  if (tools != nullptr && !tools->empty())
    throw NotImplemented("tools", "tools are not implemented here: use /v1/chat/completions");
}

NotImplemented no_echo() { return {"echo", "echo is not implemented for chats and streams: leave it out"}; }

std::vector<std::string> read_stops(Fields& fields) {
  const Json* const stop = fields.any("stop");
  if (stop == nullptr) return {};
  std::vector<std::string> out;
  if (stop->is_string()) {
    out.push_back(stop->get<std::string>());
  } else {
    const Json& list = *fields.list("stop");
    for (std::size_t i = 0; i < list.size(); ++i) out.push_back(text_at(list[i], fmt::format("stop[{}]", i)));
  }
  std::erase(out, "");
  return out;
}

std::vector<Token> read_stop_tokens(Fields& fields, int vocabulary) {
  std::vector<Token> out;
  const Json* const list = fields.list("stop_token_ids");
  if (list == nullptr) return out;
  for (std::size_t i = 0; i < list->size(); ++i)
    out.push_back(static_cast<Token>(integer_at((*list)[i], fmt::format("stop_token_ids[{}]", i), 0, vocabulary - 1)));
  return out;
}

std::vector<std::pair<Token, float>> read_biases(Fields& fields, int vocabulary) {
  std::vector<std::pair<Token, float>> out;
  const Json* const biases = fields.object("logit_bias");
  if (biases == nullptr) return out;
  for (const auto& item : biases->items()) {
    const std::string& name = item.key();
    Token token = -1;
    std::from_chars(name.data(), name.data() + name.size(), token);
    if (token < 0 || token >= vocabulary || name != std::to_string(token))  // rejects 01, which would be a second 1
      throw FieldError("logit_bias", fmt::format("logit_bias has the name '{}': names must be tokens from 0 to {}",
                                                 brief(name), vocabulary - 1));
    if (item.value().is_null()) continue;
    out.emplace_back(token, static_cast<float>(number_at(item.value(), "logit_bias." + name, -100, 100)));
  }
  return out;
}

std::uint32_t read_seed(Fields& fields, const std::optional<std::uint32_t>& standard) {
  const auto given =
      fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  if (given && *given != -1) return static_cast<std::uint32_t>(*given);  // in llama.cpp, -1 means any
  if (standard) return *standard;
  thread_local std::mt19937 any{std::random_device{}()};
  return static_cast<std::uint32_t>(any());
}

/// Reads the longest answer. If several of its names are present, the last one counts. In llama.cpp's, -1 means as many
/// as fit.
std::optional<int> read_most_tokens(Fields& fields) {
  std::optional<int> out;
  for (const char* const name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    const bool is_llama_cpps = std::string_view(name) == "n_predict";
    const auto tokens = fields.integer(name, is_llama_cpps ? -1 : 0, kMostTokens);
    if (tokens) out = *tokens < 0 ? kMostTokens : static_cast<int>(*tokens);
  }
  return out;
}

void read_sampling(Fields& fields, SamplingOptions& sampling, const RequestDefaults& defaults, int vocabulary) {
  const auto number = [&fields](const char* name, float& to, double least, double most) {
    to = static_cast<float>(fields.number(name, least, most).value_or(to));
  };
  number("temperature", sampling.temperature, 0, 100);
  number("top_p", sampling.top_p, 0, 1);
  number("min_p", sampling.min_p, 0, 1);
  number("repeat_penalty", sampling.repeat_penalty, 0.01, 100);  // llama.cpp's name
  number("repetition_penalty", sampling.repeat_penalty, 0.01, 100);
  number("presence_penalty", sampling.presence_penalty, -2, 2);
  number("frequency_penalty", sampling.frequency_penalty, -2, 2);
  if (const auto k = fields.integer("top_k", -1, kMostTokens)) sampling.top_k = std::max(0, static_cast<int>(*k));
  sampling.logit_bias = read_biases(fields, vocabulary);
  sampling.seed = read_seed(fields, defaults.seed);
}

/// Refuses features that other servers have and winnow lacks: an answer must not look as if they had been used.
AnswerForm read_common_form(Fields& fields) {
  AnswerForm out;
  if (const auto best = fields.integer("best_of", 1, kMostAnswers); best.value_or(1) != 1)
    throw NotImplemented("best_of", "best_of is not implemented: leave it out, and use n for several answers");
  refuse_missing(fields);
  out.answers = static_cast<int>(fields.integer("n", 1, kMostAnswers).value_or(1));
  read_stream(fields, out);
  read_sharing(fields, out);
  read_without_effect(fields);
  return out;
}

}  // namespace

void read_sharing(Fields& fields, AnswerForm& form) {
  constexpr int kLargest = std::numeric_limits<int>::max();
  form.priority = -static_cast<int>(
      fields.integer("priority", -kLargest, kLargest).value_or(0));  // as in vLLM, the lowest begins first
  form.cache_salt = fields.text("cache_salt");
  form.cache_prompt = fields.boolean("cache_prompt").value_or(true);
}

AnswerForm read_chat_form(Fields& fields) {
  AnswerForm out = read_common_form(fields);
  refuse_functions(fields);
  out.alternatives = read_chat_alternatives(fields);
  if (fields.is_set("echo")) throw no_echo();
  return out;
}

AnswerForm read_completion_form(Fields& fields) {
  AnswerForm out = read_common_form(fields);
  refuse_suffix_and_tools(fields);
  out.alternatives = count_of(fields.integer("logprobs", 0, kMostAlternatives));
  out.echo = fields.is_set("echo");
  if (out.echo && out.stream) throw no_echo();
  return out;
}

GenerateOptions read_generation(Fields& fields, const AnswerForm& form, const RequestDefaults& defaults,
                                const ModelInfo& model) {
  GenerateOptions out = defaults.generate;
  out.max_tokens = read_most_tokens(fields).value_or(out.max_tokens);
  out.min_tokens = static_cast<int>(fields.integer("min_tokens", 0, kMostTokens).value_or(out.min_tokens));
  if (out.min_tokens > out.max_tokens)
    throw FieldError("min_tokens", fmt::format("min_tokens is {}, but an answer has at most {} tokens", out.min_tokens,
                                               out.max_tokens));
  if (const auto ignore = fields.boolean("ignore_eos"))
    out.end = *ignore ? EndOfSequence::ignored : EndOfSequence::stops;
  read_sampling(fields, out.sampling, defaults, model.n_vocab);
  if (auto stops = read_stops(fields); !stops.empty()) out.stop = std::move(stops);
  out.stop_tokens = read_stop_tokens(fields, model.n_vocab);
  out.logprobs = form.alternatives ? std::max(1, *form.alternatives) : 0;
  out.check();
  return out;
}

}  // namespace winnow::server
