// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/choices_writer.h"

namespace winnow::server {

/// Sends the answers to a chat: messages, with reasoning and calls.
class ChatWriter : public ChoicesWriter {
 public:
  using ChoicesWriter::ChoicesWriter;

 protected:
  const char* whole_object() const override { return "chat.completion"; }
  const char* chunk_object() const override { return "chat.completion.chunk"; }
  Json first_chunk() const override { return {{"delta", {{"role", "assistant"}, {"content", ""}}}}; }
  void put_delta(Json& choice, const AnswerDelta& delta) const override;
  void put_whole(Json& choice, const Whole& whole) const override;
  Json logprobs(int choice, std::span<const GeneratedToken> tokens) override;
  const char* finish_of(const AnswerEnd& end) const override;
};

}  // namespace winnow::server
