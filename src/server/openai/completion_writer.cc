// SPDX-License-Identifier: Apache-2.0
#include "server/openai/completion_writer.h"

#include "base/as_size.h"
#include "server/openai/logprobs.h"

namespace winnow::server {

void CompletionWriter::complete(Json& choice, const Whole& whole) const {
  if (plan().echoed.empty()) return;
  const auto& tokens = plan().echoed[choice["index"].get<std::size_t>() / as_size(plan().form.answers)];
  std::string text;
  for (const Token token : tokens) text += model().vocab().text(token);
  choice["text"] = text + whole.answer.text;
  if (!plan().form.alternatives) return;
  auto all = *whole.end.prompt_logprobs;
  all.insert(all.end(), whole.answer.tokens.begin(), whole.answer.tokens.end());
  choice["logprobs"] = echoed_logprobs(tokens.front(), all, *plan().form.alternatives, model());
}

Json CompletionWriter::logprobs(int choice, std::span<const GeneratedToken> tokens) {
  return completion_logprobs(tokens, *plan().form.alternatives, model(), offsets_[choice]);
}

}  // namespace winnow::server
