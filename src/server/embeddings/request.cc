// SPDX-License-Identifier: Apache-2.0
#include "server/embeddings/request.h"

#include <spdlog/fmt/fmt.h>

#include "base/as_size.h"
#include "server/openai/cache_fields.h"
#include "server/openai/completion_request.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

constexpr const char* kEmbedded = "input";

/// Tokens of a prompt. A text ends with the end-of-sequence token if the GGUF asks for it: models that pool the last
/// token are trained with it.
std::vector<Token> embedded_tokens(const PromptSource& source, const Model& model, int context) {
  const auto* const text = std::get_if<std::string>(&source);
  if (text != nullptr) check_context(model, text->size(), context, kEmbedded);
  auto out = tokens_of_prompt(model, source);
  const auto end = model.vocab().ending();
  if (text != nullptr) out.insert(out.end(), end.begin(), end.end());
  check_context(out.size(), context, kEmbedded);
  return out;
}

bool is_empty(const PromptSource& source) {
  return std::visit([](const auto& given) { return given.empty(); }, source);
}

std::vector<std::vector<Token>> read_embedded(Fields& fields, const Model& model, int context) {
  std::vector<std::vector<Token>> out;
  for (const auto& source : read_sources(fields, kEmbedded, kMostEmbedded, model.info().n_vocab)) {
    if (is_empty(source))
      throw FieldError(kEmbedded, fmt::format("text {} of input is empty: give a text, or tokens", out.size() + 1));
    out.push_back(embedded_tokens(source, model, context));
  }
  return out;
}

std::optional<model::Pooling> read_pooling(Fields& fields) {
  const Json* const object = fields.object("winnow");
  if (object == nullptr) return std::nullopt;
  Fields inner(*object, "winnow.");
  const auto word = inner.word("pooling", {"mean", "last"});
  refuse_unknown(inner);
  if (!word) return std::nullopt;
  return *word == "last" ? model::Pooling::last : model::Pooling::mean;
}

}  // namespace

std::size_t EmbeddingRequest::tokens() const {
  std::size_t out = 0;
  for (const auto& text : texts) out += text.size();
  return out;
}

EmbeddingRequest read_embedding_request(Fields& fields, const Model& model, int context) {
  EmbeddingRequest out;
  const int width = model.info().n_embd;
  out.dimensions = as_size(static_cast<int>(fields.integer("dimensions", 1, width).value_or(width)));
  if (fields.word("encoding_format", {"float", "base64"}) == "base64") out.format = NumberFormat::base64;
  out.pooling = read_pooling(fields);
  for (const char* const name : {"model", "user"}) fields.text(name);
  out.texts = read_embedded(fields, model, context);
  return out;
}

}  // namespace winnow::server
