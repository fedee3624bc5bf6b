// SPDX-License-Identifier: Apache-2.0
#include "server/documents/questions.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "server/openai/errors.h"

namespace winnow::server {

void check_question(const AnswerRequest& request) {
  if (request.form.echo)
    throw FieldError("echo", "echo cannot be combined with winnow.documents, which are not part of the prompt");
  const AskedConversation* const conversation = request.conversation();
  if (conversation == nullptr) return;
  if (!conversation->tools.empty())
    throw FieldError("tools",
                     "tools cannot be combined with winnow.documents, because nothing is read before documents");
  const auto& messages = conversation->messages;
  if (messages.size() == 1 && messages.front().said.role == Role::user && messages.front().question == 0) return;
  throw FieldError(conversation->field,
                   fmt::format("with winnow.documents, {} must be one message of the user with one text, the question",
                               conversation->field));
}

Prompt after_documents(const Model& model, std::span<const std::shared_ptr<const documents::Document>> documents,
                       Prompt prompt, const AnswerRequest& request) {
  Prompt out;
  for (const auto& document : documents) {
    const auto& tokens = document->head().saved.transcript.tokens;
    out.text.insert(out.text.end(), tokens.begin(), tokens.begin() + document->tokens());
  }
  // The template's opening, if any, comes before the documents.
  if (request.conversation() != nullptr) {
    out.question = std::move(prompt.question);
    return out;
  }
  const auto bos = model.vocab().beginning();
  const bool has_bos =
      !bos.empty() && std::ranges::equal(bos, std::span(prompt.text).first(std::min(bos.size(), prompt.text.size())));
  out.question.assign(prompt.text.begin() + static_cast<std::ptrdiff_t>(has_bos ? bos.size() : 0), prompt.text.end());
  return out;
}

}  // namespace winnow::server
