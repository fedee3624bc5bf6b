// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "server/http/message.h"

namespace winnow::server {

/// Formats any exception as `{"type": "error", "error": {"type", "message"}}`, with its status and headers.
HttpReply messages_error(const std::exception_ptr& error);

/// The same as an event of a stream that has begun.
std::string messages_error_event(const std::exception_ptr& error);

}  // namespace winnow::server
