// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "server/http/message.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// An error in OpenAI's format. If the request wants a stream, a prompt that is too long is reported as a stream, where
/// clients look for it to shorten the conversation.
HttpReply responses_error(const std::exception_ptr& error);

/// The `error` of a failed response: `{"code", "message"}`.
Json failure_json(const std::exception_ptr& error);

}  // namespace winnow::server
