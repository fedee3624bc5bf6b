// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/errors.h"
#include "winnow/error.h"

namespace winnow::server {

/// What `use` returns; that the store cannot be used is no fault of the request: 503.
template <class Use>
auto with_store(const Use& use) {
  try {
    return use();
  } catch (const InputError& error) {
    throw ApiError(503, error.what(), {}, "session_store");
  }
}

}  // namespace winnow::server
