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

/// A message as the client sent it.
struct AskedMessage {
  Message said;
  std::size_t question = 0;  ///< offset in bytes of the content's last part
};

/// Whether and which tools the model calls.
struct AskedToolChoice {
  enum class Kind : std::uint8_t { automatic, none, required, named };
  Kind kind = Kind::automatic;
  std::string name = {};       ///< of the tool to call
  bool may_be_several = true;  ///< an answer may have several calls
  std::string path = "tool_choice";
};

/// How the model thinks before it answers, as far as its chat template supports it.
struct AskedThinking {
  chat::Thinking wanted = chat::Thinking::on;
  std::optional<int> budget = {};  ///< most tokens; none: no limit
  chat::Reasoning reasoning = chat::Reasoning::apart;
};

/// The JSON format of an answer.
struct AskedFormat {
  std::string schema = {};  ///< a JSON Schema; empty: the answer is a text
  std::string path = {};    ///< path of the schema's field, for errors
};

/// A conversation to be answered.
struct AskedConversation {
  std::vector<AskedMessage> messages = {};
  std::vector<chat::Tool> tools = {};
  AskedToolChoice choice = {};
  AskedThinking thinking = {};
  AskedFormat format = {};
  std::map<std::string, std::string> variables = {};  ///< variables of the chat template: JSON by name
  chat::Ending ending = chat::Ending::answer;
  const char* field = "messages";          ///< name of the messages' field, for errors
  std::vector<std::string> left_out = {};  ///< sentences about ignored parts of the request, for the log

  /// Bytes of all texts.
  std::size_t size() const;
};

/// Sets the effort of reasoning, a word of the chat template; `none` turns thinking off.
void ask_for_effort(const std::optional<std::string>& effort, AskedConversation& asked);

/// The most tokens of thinking, by the field names of llama.cpp's and vLLM's servers; none: no limit.
std::optional<int> read_thinking_budget(Fields& fields);

/// Removes the tools that may not be called. Throws FieldError for a choice that the tools do not allow.
void choose_tools(AskedConversation& asked);

/// True for a tool that is not a function of the client; adds a sentence for the log.
bool leaves_out(const std::string& type, const char* of_functions, AskedConversation& to);

/// A message made of the parts of its content, each beginning on a new line.
AskedMessage message_of_parts(Role role, const std::vector<std::string>& parts);

/// Reads a function's name from `fields`. Throws FieldError for an invalid name.
std::string read_tool_name(Fields& fields);

/// Checks that the arguments of an earlier call are JSON; white space counts as no arguments. Throws FieldError.
std::string checked_arguments(const std::string& text, const std::string& path);

}  // namespace winnow::server
