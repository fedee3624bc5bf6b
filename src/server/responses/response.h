// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/answer.h"

namespace winnow::server {

/// The object `response` without an output. `repeated` are the fields of the request that it repeats.
Json response_json(const AnswerHead& head, const char* status, const Json& repeated);

}  // namespace winnow::server
