// SPDX-License-Identifier: Apache-2.0
#include "server/openai/text_routes.h"

#include <spdlog/fmt/fmt.h>

#include "server/answers/written.h"
#include "server/openai/answer.h"
#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

HttpReply reply_of(const Json& json) { return {.body = text_of(json)}; }

/// Tokenizes a text, which llama.cpp calls `content` and vLLM `prompt`. BOS is added by default in vLLM, and not in
/// llama.cpp.
std::vector<Token> tokens_of(const Model& model, Fields& fields) {
  const auto content = fields.text("content");
  const auto prompt = fields.text("prompt");
  if (!content && !prompt) throw FieldError("prompt", "prompt is missing: give a string");
  const auto special = fields.boolean("add_special_tokens");
  const bool adds = special.value_or(fields.boolean("add_special").value_or(!content.has_value()));
  const auto control = fields.boolean("parse_special").value_or(true) ? ControlTokens::parsed : ControlTokens::as_text;
  const std::string& text = content ? *content : *prompt;
  const auto& vocab = model.vocab();
  return adds && control == ControlTokens::parsed ? vocab.opening(text) : vocab.tokenize(text, control);
}

std::vector<Token> chat_tokens(const Model& model, Fields& fields) {
  Prompt out = write(model, read_chat(fields), ControlTokens::as_text).prompt.prompt;
  out.text.insert(out.text.end(), out.question.begin(), out.question.end());
  return out.text;
}

Json name_or_null(const Model& model, Token token) {
  return token < 0 ? Json(nullptr) : Json(model.vocab().name(token));
}

/// Serializes a list element by element: as JSON values, the tokens of a long text would take many times its bytes.
template <class Print>
std::string list_of(const std::vector<Token>& tokens, const Print& print) {
  std::string out = "[";
  for (const Token token : tokens) out += (out.size() > 1 ? "," : "") + print(token);
  return out + "]";
}

}  // namespace

HttpReply tokenize_route(Fields& fields, const RequestTerms& terms) {
  const Model& model = terms.model;
  const auto tokens = fields.any("messages") == nullptr ? tokens_of(model, fields) : chat_tokens(model, fields);
  std::string out =
      fmt::format(R"({{"tokens":{},"count":{},"max_model_len":{})",
                  list_of(tokens, [](Token token) { return std::to_string(token); }), tokens.size(), terms.context);
  if (fields.is_set("return_token_strs"))
    out += R"(,"token_strs":)" + list_of(tokens, [&](Token token) { return text_of(model.vocab().name(token)); });
  return {.body = out + "}"};
}

HttpReply detokenize_route(Fields& fields, const RequestTerms& terms) {
  const Model& model = terms.model;
  const Json* const list = fields.list("tokens");
  if (list == nullptr) throw FieldError("tokens", "tokens is missing: give a list of tokens");
  std::string text;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto token = integer_at((*list)[i], fmt::format("tokens[{}]", i), 0, model.info().n_vocab - 1);
    text += model.vocab().name(static_cast<Token>(token));
  }
  return reply_of({{"content", text}, {"prompt", text}});
}

HttpReply apply_template_route(Fields& fields, const RequestTerms& terms) {
  return reply_of({{"prompt", write(terms.model, read_chat(fields), ControlTokens::as_text).text}});
}

HttpReply tokenizer_info(const Model& model) {
  const auto& vocab = model.vocab();
  return reply_of({{"bos_token", name_or_null(model, vocab.beginning_of_text())},
                   {"eos_token", name_or_null(model, vocab.end_of_text())},
                   {"chat_template", text_or_null(vocab.chat_template())}});
}

}  // namespace winnow::server
