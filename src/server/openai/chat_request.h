// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/openai/fields.h"
#include "winnow/conversation.h"
#include "winnow/model.h"

namespace winnow::server {

/// A message of a chat: its texts, each of which is tokenized by itself.
struct ChatMessage {
  Role role = Role::user;
  std::vector<std::string> parts;
};

/// What comes after the last message.
enum class ChatEnd : std::uint8_t {
  answer,     ///< what makes the model begin an answer
  nothing,    ///< what ends the message
  continued,  ///< nothing at all: the model goes on with the message
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  ChatEnd end = ChatEnd::answer;

  /// Bytes of all messages.
  std::size_t size() const;
};

/// Reads `messages`, `add_generation_prompt` and `continue_final_message`. Throws ApiError.
ChatPrompt read_chat(Fields& fields);

/// Its tokens by the model's chat template: those of `Model::tokenize` for the same conversation. The question is the
/// last text of the last message of the user, and what follows it. Throws ApiError where the template cannot put it.
Prompt tokenize(const Model& model, const ChatPrompt& chat, ControlTokens control);

/// Its text by the template.
std::string render(const Model& model, const ChatPrompt& chat);

}  // namespace winnow::server
