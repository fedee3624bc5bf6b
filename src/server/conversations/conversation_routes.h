// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/conversations/conversation_store.h"
#include "server/http/message.h"

namespace winnow::server {

/// Lists an owner's conversations. These functions throw ApiError: 404 for an unknown name, 503 for a store that cannot
/// be used.
HttpReply conversations_reply(const ConversationStore& store, const std::string& owner);
HttpReply conversation_reply(const ConversationStore& store, const ConversationKey& key);
HttpReply remove_conversation(ConversationStore& store, const ConversationKey& key);

}  // namespace winnow::server
