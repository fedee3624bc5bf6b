// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/reader.h"
#include "server/openai/fields.h"
#include "winnow/conversation.h"

namespace winnow::server {

/// The message that an answer is: calls, one a line, if it begins as one; else text. Calls are known when it is whole,
/// and what is cut off is none.
Message message_of_answer(const std::string& text, AnswerExtent extent);

/// Earlier calls of a conversation, as the model has written them. Throws FieldError.
std::string read_calls(const RequestJson& calls, const std::string& path);

/// What stands before a call's result in a conversation.
constexpr const char* kResultOpening = "Result of the call:\n";

}  // namespace winnow::server
