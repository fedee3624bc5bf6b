// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/request.h"
#include "server/http/message.h"
#include "winnow/model.h"

namespace winnow::server {

/// Routes for texts and tokens. All but the last are TextRoutes. Throw ApiError.
HttpReply tokenize_route(Fields& fields, const RequestTerms& terms);
HttpReply detokenize_route(Fields& fields, const RequestTerms& terms);
HttpReply apply_template_route(Fields& fields, const RequestTerms& terms);
HttpReply tokenizer_info(const Model& model);

}  // namespace winnow::server
