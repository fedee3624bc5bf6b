// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/openai/fields.h"

namespace winnow::server {

/// The grammar (GBNF) of the answers that `response_format` asks for; empty: any. `body` is the request as it came,
/// which has the order of a schema's properties. Throws ApiError.
std::string read_response_format(Fields& fields, const RequestJson& request, const std::string& body);

}  // namespace winnow::server
