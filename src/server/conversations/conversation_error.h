// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/conversations/conversation_store.h"
#include "server/openai/errors.h"
#include "winnow/error.h"

namespace winnow::server {

/// Returns the result of `use`, which uses the store. Errors of the store become 503: they are not the request's fault.
template <class Use>
auto with_store(const ConversationStore& store, const Use& use) {
  try {
    return store.place().use(use);
  } catch (const InputError& error) {
    throw ApiError(503, error.what(), {}, "session_store");
  }
}

}  // namespace winnow::server
