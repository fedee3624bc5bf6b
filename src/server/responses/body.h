// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/request.h"

namespace winnow::server {

/// Reads the body of a request for a response. Throws ApiError.
AnswerRequest read_responses_body(Fields& fields, const RequestTerms& terms);

}  // namespace winnow::server
