// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/http/message.h"
#include "server/openai/fields.h"
#include "winnow/model.h"

namespace winnow::server {

/// What the routes about texts and tokens answer. All but the last take the fields of a request. Throw ApiError.
HttpReply tokenize_route(const Model& model, Fields& fields, int context);
HttpReply detokenize_route(const Model& model, Fields& fields, int context);
HttpReply apply_template_route(const Model& model, Fields& fields, int context);
HttpReply tokenizer_info(const Model& model);

}  // namespace winnow::server
