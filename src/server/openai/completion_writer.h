// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "server/openai/choices_writer.h"

namespace winnow::server {

/// Sends continuations of prompts: texts, after their prompts if the request wants it.
class CompletionWriter : public ChoicesWriter {
 public:
  using ChoicesWriter::ChoicesWriter;

 protected:
  const char* whole_object() const override { return "text_completion"; }
  const char* chunk_object() const override { return "text_completion"; }
  void put_delta(Json& choice, const AnswerDelta& delta) const override { choice["text"] = delta.text; }
  void put_whole(Json& choice, const Whole& whole) const override { choice["text"] = whole.answer.text; }
  void complete(Json& choice, const Whole& whole) const override;
  Json logprobs(int choice, std::span<const GeneratedToken> tokens) override;

 private:
  std::map<int, std::size_t> offsets_;  ///< offset of a choice's next token, in characters of its answer
};

}  // namespace winnow::server
