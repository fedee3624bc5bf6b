// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/openai/answer.h"
#include "server/openai/fields.h"

namespace winnow::server {

/// Some fields of a body with their members in the order in which they were sent, which Fields does not know. REQUIRES:
/// `parsed` is what parse_body() makes of it. Throws FieldError where an object in them has very many members.
Json fields_in_order(const std::string& body, const RequestJson& parsed, const std::vector<std::string>& names);

}  // namespace winnow::server
