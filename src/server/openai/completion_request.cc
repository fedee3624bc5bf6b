// SPDX-License-Identifier: Apache-2.0
#include "server/openai/completion_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "server/openai/errors.h"
#include "server/openai/field_limits.h"

namespace winnow::server {

namespace {

std::vector<Token> read_tokens(const Json& list, const std::string& path, int vocabulary) {
  std::vector<Token> out;
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    out.push_back(static_cast<Token>(integer_at(list[i], fmt::format("{}[{}]", path, i), 0, vocabulary - 1)));
  return out;
}

PromptSource read_one(const Json& value, const std::string& path, int vocabulary) {
  if (value.is_array()) return read_tokens(value, path, vocabulary);
  return text_at(value, path);
}

}  // namespace

std::vector<PromptSource> read_sources(Fields& fields, const char* field, std::size_t most, int vocabulary) {
  const Json* const given = fields.any(field);
  if (given == nullptr) throw FieldError(field, fmt::format("{} is missing: give a string or a list of tokens", field));
  const bool is_list = given->is_array() && (given->empty() || !given->front().is_number());
  if (!is_list) return {read_one(*given, field, vocabulary)};
  if (given->empty() || given->size() > most)
    throw FieldError(field, fmt::format("{} is a list of {} prompts: give 1 to {}", field, given->size(), most));
  std::vector<PromptSource> out;
  for (std::size_t i = 0; i < given->size(); ++i)
    out.push_back(read_one((*given)[i], fmt::format("{}[{}]", field, i), vocabulary));
  return out;
}

std::vector<PromptSource> read_prompts(Fields& fields, int vocabulary) {
  return read_sources(fields, "prompt", kMostPrompts, vocabulary);
}

std::size_t longest_text(const std::vector<PromptSource>& prompts) {
  std::size_t out = 0;
  for (const auto& prompt : prompts) {
    if (const auto* const text = std::get_if<std::string>(&prompt)) out = std::max(out, text->size());
  }
  return out;
}

std::vector<Token> tokens_of_prompt(const Model& model, const PromptSource& prompt) {
  const auto* const text = std::get_if<std::string>(&prompt);
  return text == nullptr ? std::get<std::vector<Token>>(prompt) : model.vocab().opening(*text);
}

void check_context(std::size_t tokens, int context, const char* field) {
  if (tokens >= as_size(context)) throw PromptTooLong(tokens, PromptTooLong::Count::exact, context, field);
}

void check_context(const Model& model, std::size_t bytes, int context, const char* field) {
  const std::size_t least = model.vocab().least_tokens(bytes);
  if (least >= as_size(context)) throw PromptTooLong(least, PromptTooLong::Count::least, context, field);
}

}  // namespace winnow::server
