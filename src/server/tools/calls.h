// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/openai/answer.h"
#include "server/openai/fields.h"

namespace winnow::server {

/// A function that a model has called.
struct ToolCall {
  std::string name;
  std::string arguments;  ///< JSON
};

/// Whether an answer that may be calls is some: it begins so.
inline bool begins_call(std::string_view text) { return text.starts_with('{'); }

/// The calls of an answer, one a line. What is cut off is none.
std::vector<ToolCall> calls_in(const std::string& text);

/// As a message has them: `id` goes before their numbers.
Json calls_json(const std::vector<ToolCall>& calls, const std::string& id);

/// Earlier calls of a conversation, as the model has written them. Throws FieldError.
std::string read_calls(const RequestJson& calls, const std::string& path);

/// What stands before a call's result in a conversation.
constexpr const char* kResultOpening = "Result of the call:\n";

}  // namespace winnow::server
