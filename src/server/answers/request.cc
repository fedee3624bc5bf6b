// SPDX-License-Identifier: Apache-2.0
#include "server/answers/request.h"

#include <utility>

namespace winnow::server {

ChatPrompt prompt_of(ConversationRequest conversation) {
  ChatPrompt out = std::move(conversation.chat);
  if (!conversation.tools.list.empty()) add_instructions(out, instructions_of(conversation.tools));
  return out;
}

}  // namespace winnow::server
