// SPDX-License-Identifier: Apache-2.0
#include "server/documents/questions.h"

#include <algorithm>

#include "engine/model_impl.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

bool is_one_text(const RequestJson& message) {
  const auto role = message.find("role");
  const auto content = message.find("content");
  return role != message.end() && *role == "user" && content != message.end() &&
         (content->is_string() || content->size() == 1);
}

}  // namespace

void check_question(Fields& fields, const AnswerForm& form) {
  if (form.echo) throw FieldError("echo", "echo does not go with winnow.documents: they are not read with the prompt");
  if (form.calls) throw FieldError("tools", "tools do not go with winnow.documents: nothing is read before documents");
  if (form.surface == Surface::completion) return;
  const RequestJson* const messages = fields.list("messages");
  if (messages != nullptr && messages->size() == 1 && is_one_text(messages->front())) return;
  throw FieldError("messages",
                   "documents are asked a question: messages must be one message of the user with one text");
}

Prompt after_documents(const Model& model, std::span<const std::shared_ptr<const documents::Document>> documents,
                       Prompt prompt, Surface surface) {
  Prompt out;
  for (const auto& document : documents) {
    const auto& tokens = document->head().saved.transcript.tokens;
    out.text.insert(out.text.end(), tokens.begin(), tokens.begin() + document->tokens());
  }
  if (surface ==
      Surface::chat) {  // what the template puts before the first message comes before the documents, if at all
    out.question = std::move(prompt.question);
    return out;
  }
  const auto bos = model.impl().vocab.beginning();
  const bool has_bos =
      !bos.empty() && std::ranges::equal(bos, std::span(prompt.text).first(std::min(bos.size(), prompt.text.size())));
  out.question.assign(prompt.text.begin() + static_cast<std::ptrdiff_t>(has_bos ? bos.size() : 0), prompt.text.end());
  return out;
}

}  // namespace winnow::server
