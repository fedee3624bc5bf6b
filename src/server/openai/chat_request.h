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

  /// All of them.
  std::string text() const;
};

/// `system`, `user` or `assistant`.
const char* role_name(Role role);
/// Throws UsageError for another name.
Role role_named(const std::string& name);

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

/// A prompt, and where the stages of its text end (see Request); empty: it has none.
struct StagedPrompt {
  Prompt prompt;
  std::vector<std::size_t> stages = {};

  std::size_t size() const { return prompt.text.size() + prompt.question.size(); }
};

/// Adds to the system message, or puts one first.
void add_instructions(ChatPrompt& chat, const std::string& text);

/// Its tokens by the model's chat template: those of `Model::tokenize` for the same conversation. The question is the
/// last text of the last message of the user, and what follows it; a stage ends where the question began when an
/// earlier message was the last one. Throws ApiError where the template cannot put it.
StagedPrompt tokenize(const Model& model, const ChatPrompt& chat, ControlTokens control);

/// Its text by the template.
std::string render(const Model& model, const ChatPrompt& chat);

}  // namespace winnow::server
