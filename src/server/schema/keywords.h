// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/openai/answer.h"
#include "server/schema/numbers.h"
#include "server/schema/rules.h"

namespace winnow::server {

/// Throws FieldError unless the schema is an object of known keywords, or true. One that others stand beside, `$ref` or
/// `anyOf`, `enum` or `const`, must be alone with what says nothing about the value.
void check_keywords(const Json& schema, const std::string& path);

/// The types of values that a schema describes: those of `type`, or those that its keywords are about, or all.
std::vector<std::string> types_of(const Json& schema, const std::string& path);

/// Whether a value is of one of these types.
bool has_type(const Json& value, const std::vector<std::string>& types);

/// How often something comes, by two keywords.
Times times_of(const Json& schema, const char* least, const char* most, const std::string& path);

/// The bounds of `minimum`, `maximum`, `exclusiveMinimum` and `exclusiveMaximum`.
NumberRange range_of(const Json& schema, const std::string& path);
/// Whether one of them is there.
bool has_bounds(const Json& schema);

/// A list of texts; empty where there is none.
std::vector<std::string> texts_of(const Json& schema, const char* keyword, const std::string& path);

}  // namespace winnow::server
