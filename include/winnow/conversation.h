// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/prompt.h"

namespace winnow {

/// Who says a message of a chat. A tool says what a call of it has given.
enum class Role : std::uint8_t { system, user, assistant, tool };

/// As chat templates and APIs call it.
constexpr const char* name_of(Role role) {
  constexpr const char* kNames[] = {"system", "user", "assistant", "tool"};
  return kNames[static_cast<std::size_t>(role)];
}

/// A function that a model has called.
struct ToolCall {
  std::string id = {};  ///< empty: the call has none
  std::string name;
  std::string arguments;  ///< JSON
  bool operator==(const ToolCall&) const = default;
};

struct Message {
  Role role = Role::user;
  std::string content;
  std::string reasoning = {};        ///< of the assistant: its thinking before the content
  std::vector<ToolCall> calls = {};  ///< of the assistant, after the content
  std::string call_id = {};          ///< of a tool: the call that the content answers
  std::string tool_name = {};        ///< of a tool
  bool operator==(const Message&) const = default;
};

/// A text and what has been said about it. The last message that is not the system's tells what may come next: there is
/// none, then any question may follow the text; it is the user's, then the model is to answer; it is the assistant's,
/// then the model has.
struct WINNOW_EXPORT Conversation {
  std::string text;               ///< goes before the user's first words, may be empty
  std::vector<Message> messages;  ///< without one of the system, the template may insert its own
  PromptFormat format = PromptFormat::chat;
  ControlTokens control = ControlTokens::as_text;  ///< in the text and in messages that are not the system's

  /// The last message that is not the system's, or null.
  const Message* last() const;
  /// Whether that is the user's.
  bool awaits_answer() const;
  /// The same with one more question. An answer that is still awaited is left empty.
  Conversation with_question(std::string question) const;
};

/// The text of a prompt, with its system message, before its question.
WINNOW_EXPORT Conversation before_question(const PromptText& prompt);

/// Everything that a sequence has read: the words, and their tokens as they came.
struct Transcript {
  Conversation conversation;
  std::vector<Token> tokens;  ///< those beyond what the sequence's cache has seen are read next
};

/// Whether a template puts the earlier messages as it did when they were the last.
enum class Past : std::uint8_t { unchanged, rewritten };

/// Tokens that a question adds to a conversation.
struct Turn {
  std::vector<Token> tokens;  ///< from the end of what has been read to where the next answer begins
  Past past = Past::unchanged;
};

}  // namespace winnow
