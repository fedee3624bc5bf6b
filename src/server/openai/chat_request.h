// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/request.h"

namespace winnow::server {

/// Reads `messages`, `tools`, `tool_choice`, `parallel_tool_calls`, `chat_template_kwargs`, `reasoning_format`,
/// `add_generation_prompt` and `continue_final_message`. Throws ApiError.
AskedConversation read_chat(Fields& fields);

}  // namespace winnow::server
