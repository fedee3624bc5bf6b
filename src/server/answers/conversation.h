// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/answers/request.h"
#include "winnow/conversation.h"

namespace winnow::server {

/// A message as a client has sent it.
struct AskedMessage {
  Message said;
  std::size_t question = 0;  ///< where the last part of the content begins, in bytes
};

/// A function that the model may call.
struct AskedTool {
  std::string name;
  std::string description;
  nlohmann::ordered_json parameters;  ///< a JSON schema
  std::string path;                   ///< of the parameters, in errors
};

/// Whether the model calls its tools.
struct AskedToolChoice {
  enum class Kind : std::uint8_t { automatic, none, required, named };
  Kind kind = Kind::automatic;
  std::string name = {};       ///< of the tool that is called
  bool may_be_several = true;  ///< calls in one answer
  std::string path = "tool_choice";
};

/// Whether the model thinks before it answers, as far as its template has a switch for it.
struct AskedThinking {
  std::optional<bool> wanted = {};  ///< none: as the template has it
  std::optional<int> budget = {};   ///< tokens
};

/// What comes after the last message.
enum class AskedEnd : std::uint8_t { answer, continued };

/// A conversation as APIs with messages, reasoning and calls have it.
struct AskedConversation {
  std::vector<AskedMessage> messages;
  std::vector<AskedTool> tools;
  AskedToolChoice choice;
  AskedThinking thinking;
  AskedEnd end = AskedEnd::answer;
};

/// The conversation as it is put to the model. `field` is the one that has it, `left_out` what of the request is not
/// there. Throws FieldError for a choice that the tools do not allow.
ConversationRequest conversation_of(AskedConversation asked, const char* field, std::vector<std::string> left_out);

/// Texts of one message as its content: each on lines of its own.
AskedMessage message_of_parts(Role role, const std::vector<std::string>& parts);

/// The name of a function in `fields`. Throws FieldError for one that no client may give.
std::string read_tool_name(Fields& fields);

/// A call's arguments of earlier messages, which must be JSON; an empty text stands for none. Throws FieldError.
std::string checked_arguments(const std::string& text, const std::string& path);

}  // namespace winnow::server
