// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "server/http/message.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// OpenAI's form of errors. A prompt that is too long is told in a stream where the request wants one: its clients look
/// for it there, to shorten their conversation.
HttpReply responses_error(const std::exception_ptr& error);

/// `error` of a response that has failed: `{"code", "message"}`.
Json failure_json(const std::exception_ptr& error);

}  // namespace winnow::server
