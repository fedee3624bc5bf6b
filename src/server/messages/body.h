// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/request.h"

namespace winnow::server {

/// Reads the body of a request for a message. Throws ApiError.
AnswerRequest read_messages_body(Fields& fields, const RequestTerms& terms);

/// Reads the fields that make up the prompt: `system`, `messages`, `tools`, `tool_choice`. Throws ApiError.
AskedConversation read_messages_conversation(Fields& fields);

}  // namespace winnow::server
