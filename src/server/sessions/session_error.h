// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/errors.h"
#include "server/sessions/session_store.h"
#include "winnow/error.h"

namespace winnow::server {

/// Returns what `use` returns, which uses the store; that it cannot be used is no fault of the request: 503.
template <class Use>
auto with_store(const SessionStore& store, const Use& use) {
  try {
    return store.place().use(use);
  } catch (const InputError& error) {
    throw ApiError(503, error.what(), {}, "session_store");
  }
}

}  // namespace winnow::server
