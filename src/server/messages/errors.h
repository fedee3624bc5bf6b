// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "server/http/message.h"

namespace winnow::server {

/// `{"type": "error", "error": {"type", "message"}}` with its status and headers, for whatever was thrown.
HttpReply messages_error(const std::exception_ptr& error);

/// The same as an event, for a stream that has begun.
std::string messages_error_event(const std::exception_ptr& error);

}  // namespace winnow::server
