// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/http/message.h"
#include "server/sessions/session_store.h"

namespace winnow::server {

/// Lists an owner's conversations. These functions throw ApiError: 404 for an unknown name, 503 for a store that cannot
/// be used.
HttpReply sessions_reply(const SessionStore& store, const std::string& owner);
HttpReply session_reply(const SessionStore& store, const SessionKey& key);
HttpReply remove_session(SessionStore& store, const SessionKey& key);

}  // namespace winnow::server
