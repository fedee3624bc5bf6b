// SPDX-License-Identifier: Apache-2.0
#include "server/openai/surfaces.h"

#include "server/openai/chat_request.h"
#include "server/openai/chat_writer.h"
#include "server/openai/completion_writer.h"
#include "server/openai/errors.h"
#include "server/openai/generation_fields.h"
#include "server/openai/response_format.h"

namespace winnow::server {

namespace {

template <class Writer>
std::shared_ptr<AnswerWriter> choices_writer(const std::shared_ptr<const Model>& model, AnswerPlan plan,
                                             std::shared_ptr<Responder> to) {
  return std::make_shared<Writer>(model, std::move(plan), std::move(to));
}

AnswerRequest read_chat_body(Fields& fields, const RequestTerms& terms) {
  AnswerRequest out{.form = read_chat_form(fields)};
  out.generate = read_generation(fields, out.form, terms.defaults, terms.model.info());
  out.asked = read_chat(fields);
  return out;
}

AnswerRequest read_completion_body(Fields& fields, const RequestTerms& terms) {
  AnswerRequest out{.form = read_completion_form(fields)};
  out.generate = read_generation(fields, out.form, terms.defaults, terms.model.info());
  out.asked = PromptsRequest{read_prompts(fields, terms.model.info().n_vocab), read_response_format(fields)};
  return out;
}

}  // namespace

Surface chat_surface() {
  return {{"/v1/chat/completions", "/chat/completions"},
          "chatcmpl-",
          read_chat_body,
          choices_writer<ChatWriter>,
          error_reply};
}

Surface completion_surface() {
  return {{"/v1/completions", "/completions"},
          "cmpl-",
          read_completion_body,
          choices_writer<CompletionWriter>,
          error_reply};
}

}  // namespace winnow::server
