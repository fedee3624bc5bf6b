// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/conversation.h"
#include "server/openai/fields.h"

namespace winnow::server {

/// Reads a field that asks for JSON: its `type` is `text`, `json_object`, or `json_schema` with a `schema`. Throws
/// FieldError.
AskedFormat read_format(Fields& fields, const char* field);

/// The same for `response_format`, whose schema is in an object `json_schema` beside its name, or for vLLM's and
/// llama.cpp's fields for a schema.
AskedFormat read_response_format(Fields& fields);

/// Reads the schema of a function's parameters. A missing or empty one, which would allow any value, counts as an
/// object without members. Throws FieldError, also for keywords that the grammar does not enforce if `strict` is set.
std::string read_object_schema(Fields& fields, const char* field);

}  // namespace winnow::server
