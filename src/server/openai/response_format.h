// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/conversation.h"
#include "server/openai/fields.h"

namespace winnow::server {

/// Reads a field that asks for JSON: its `type` is `text`, `json_object`, or `json_schema` with a `schema`. Throws
/// FieldError.
AskedFormat read_format(Fields& fields, const char* field);

/// The same of `response_format`, whose schema has a name beside it and is in an object `json_schema`, or of vLLM's and
/// llama.cpp's fields for a schema.
AskedFormat read_response_format(Fields& fields);

/// The schema of a function's parameters in a field. None, and an empty one, which any value would fit, is taken for
/// that of an object without members. Beside it, `strict` may say that each of its keywords counts. Throws FieldError,
/// which then names the keywords that no grammar enforces.
std::string read_object_schema(Fields& fields, const char* field);

}  // namespace winnow::server
