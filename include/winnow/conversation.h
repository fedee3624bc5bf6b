// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/prompt.h"

namespace winnow {

/// The author of a message of a chat. `tool` is the result of a tool call.
enum class Role : std::uint8_t { system, user, assistant, tool };

/// Name in chat templates and APIs.
constexpr const char* name_of(Role role) {
  constexpr const char* kNames[] = {"system", "user", "assistant", "tool"};
  return kNames[static_cast<std::size_t>(role)];
}

/// A function call by a model.
struct ToolCall {
  std::string id = {};  ///< empty: the call has no id
  std::string name;
  std::string arguments;  ///< JSON
  bool operator==(const ToolCall&) const = default;
};

struct Message {
  Role role = Role::user;
  std::string content;
  std::string reasoning = {};        ///< assistant only: its thinking before the content
  std::vector<ToolCall> calls = {};  ///< assistant only, after the content
  std::string call_id = {};          ///< tool only: the call that the content answers
  std::string tool_name = {};        ///< tool only
  bool operator==(const Message&) const = default;
};

/// A text and the messages about it. The role of the last message, system messages aside, determines what may follow:
/// the answer after the user's, the next question after the assistant's, a first question if there is no message.
struct WINNOW_EXPORT Conversation {
  std::string text;               ///< precedes the user's first message, may be empty
  std::vector<Message> messages;  ///< without a system message, the template may insert its own
  PromptFormat format = PromptFormat::chat;
  ControlTokens control = ControlTokens::as_text;  ///< in the text and in all messages but the system's

  /// The last message that is not the system's; null if there is none.
  const Message* last() const;
  /// True if that message is the user's.
  bool awaits_answer() const;
  /// A copy with one more question. A pending answer is left empty.
  Conversation with_question(std::string question) const;
};

/// The conversation of a prompt before its question: its text and system message.
WINNOW_EXPORT Conversation before_question(const PromptText& prompt);

/// Everything that a sequence has read: the conversation and its tokens.
struct Transcript {
  Conversation conversation;
  std::vector<Token> tokens;  ///< the sequence's cache may have seen only the first of them; the others are read next
};

/// Whether a template renders earlier messages as it did when they were the last.
enum class Past : std::uint8_t { unchanged, rewritten };

/// Tokens that a question adds to a conversation.
struct Turn {
  std::vector<Token> tokens;  ///< from the end of the read tokens to where the next answer begins
  Past past = Past::unchanged;
};

}  // namespace winnow
