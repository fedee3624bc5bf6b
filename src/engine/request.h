// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/session_impl.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// Throws InputError for a request with nothing to read or an unknown token, and UsageError for contradictory options.
void check(const Request& request, const Session::Impl& session);

}  // namespace winnow::engine
