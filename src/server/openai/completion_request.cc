// SPDX-License-Identifier: Apache-2.0
#include "server/openai/completion_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "engine/model_impl.h"
#include "server/openai/errors.h"
#include "server/openai/field_limits.h"

namespace winnow::server {

namespace {

constexpr const char* kPrompt = "prompt";

[[noreturn]] void refuse_length(std::size_t tokens, const char* least, int context, const char* field) {
  throw ApiError(400,
                 fmt::format("the prompt has {}{} tokens, which exceeds the available context size of {} tokens with "
                             "its answer: shorten it, or start the server with a larger --context",
                             least, tokens, context),
                 field, "context_length_exceeded");
}

std::vector<Token> read_tokens(const RequestJson& list, const std::string& path, int vocabulary) {
  std::vector<Token> out;
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    out.push_back(static_cast<Token>(integer_at(list[i], fmt::format("{}[{}]", path, i), 0, vocabulary - 1)));
  return out;
}

Prompt read_one(const RequestJson& value, const std::string& path, const Model& model, int context) {
  if (value.is_array()) return {read_tokens(value, path, model.info().n_vocab), {}};
  const std::string& text = text_at(value, path);
  check_context(model, text.size(), context, kPrompt);
  return {tokens_of_prompt(model, text), {}};
}

}  // namespace

std::vector<Prompt> read_prompts(Fields& fields, const Model& model, int context) {
  const RequestJson* const prompt = fields.any(kPrompt);
  if (prompt == nullptr) throw FieldError(kPrompt, "prompt is missing: give a string, or tokens");
  const bool is_list = prompt->is_array() && (prompt->empty() || !prompt->front().is_number());
  if (!is_list) return {read_one(*prompt, kPrompt, model, context)};
  if (prompt->empty() || prompt->size() > kMostPrompts)
    throw FieldError(kPrompt,
                     fmt::format("prompt is a list of {}: it must have 1 to {}", prompt->size(), kMostPrompts));
  std::vector<Prompt> out;
  for (std::size_t i = 0; i < prompt->size(); ++i)
    out.push_back(read_one((*prompt)[i], fmt::format("prompt[{}]", i), model, context));
  return out;
}

std::size_t longest_text(Fields& fields) {
  const RequestJson* const prompt = fields.any(kPrompt);
  if (prompt == nullptr) return 0;
  const auto bytes = [](const RequestJson& value) {
    return value.is_string() ? value.get_ref<const std::string&>().size() : 0;
  };
  std::size_t out = bytes(*prompt);
  if (prompt->is_array()) {
    for (const auto& one : *prompt) out = std::max(out, bytes(one));
  }
  return out;
}

std::vector<Token> tokens_of_prompt(const Model& model, const std::string& text) {
  return model.impl().vocab.opening(text);
}

void check_context(std::size_t tokens, int context, const char* field) {
  if (tokens >= as_size(context)) refuse_length(tokens, "", context, field);
}

void check_context(const Model& model, std::size_t bytes, int context, const char* field) {
  const std::size_t least = model.impl().vocab.least_tokens(bytes);
  if (least >= as_size(context)) refuse_length(least, "at least ", context, field);
}

}  // namespace winnow::server
