// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chat/template.h"
#include "server/openai/fields.h"
#include "winnow/conversation.h"

namespace winnow::server {

/// A message as a client has sent it.
struct AskedMessage {
  Message said;
  std::size_t question = 0;  ///< where the last part of the content begins, in bytes
};

/// Whether the model calls its tools.
struct AskedToolChoice {
  enum class Kind : std::uint8_t { automatic, none, required, named };
  Kind kind = Kind::automatic;
  std::string name = {};       ///< of the tool that is called
  bool may_be_several = true;  ///< calls in one answer
  std::string path = "tool_choice";
};

/// How the model thinks before it answers, as far as its template knows of it.
struct AskedThinking {
  chat::Thinking wanted = chat::Thinking::on;
  std::optional<int> budget = {};  ///< tokens; none: as many as come
  chat::Reasoning reasoning = chat::Reasoning::apart;
};

/// The form of JSON that an answer has.
struct AskedFormat {
  std::string schema = {};  ///< a JSON Schema; empty: the answer is a text
  std::string path = {};    ///< of the schema, for errors
};

/// A conversation that is to be answered.
struct AskedConversation {
  std::vector<AskedMessage> messages = {};
  std::vector<chat::Tool> tools = {};
  AskedToolChoice choice = {};
  AskedThinking thinking = {};
  AskedFormat format = {};
  std::map<std::string, std::string> variables = {};  ///< of the template: JSON by name
  chat::Ending ending = chat::Ending::answer;
  const char* field = "messages";          ///< that has it, for errors
  std::vector<std::string> left_out = {};  ///< sentences about what of the request is not there, for the log

  /// Bytes of all texts.
  std::size_t size() const;
};

/// Takes a word for how much the model thinks, which is its template's; `none` is not to think.
void ask_for_effort(const std::optional<std::string>& effort, AskedConversation& asked);

/// The most tokens of thinking by the names that llama.cpp's and vLLM's servers have for it; none: as many as come.
std::optional<int> read_thinking_budget(Fields& fields);

/// Leaves the tools that may be called. Throws FieldError for a choice that they do not allow.
void choose_tools(AskedConversation& asked);

/// Whether a tool is of another type than the functions of the client, which is said in the log.
bool leaves_out(const std::string& type, const char* of_functions, AskedConversation& to);

/// Texts of one message as its content: each on lines of its own.
AskedMessage message_of_parts(Role role, const std::vector<std::string>& parts);

/// The name of a function in `fields`. Throws FieldError for one that no client may give.
std::string read_tool_name(Fields& fields);

/// A call's arguments of earlier messages, which must be JSON; white space stands for none. Throws FieldError.
std::string checked_arguments(const std::string& text, const std::string& path);

}  // namespace winnow::server
