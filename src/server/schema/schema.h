// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/openai/answer.h"

namespace winnow::server {

/// The grammar (GBNF) of JSON that a JSON schema describes. Members come in the order of `properties`. `path` is where
/// the schema is in its request. Throws FieldError, which names the place, for a keyword that is not known and for what
/// cannot be.
std::string grammar_of_schema(const Json& schema, const std::string& path);

/// That of any JSON object.
std::string grammar_of_objects();

}  // namespace winnow::server
