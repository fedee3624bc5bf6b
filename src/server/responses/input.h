// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/answers/conversation.h"

namespace winnow::server {

/// Reads `instructions` and `input` into messages. Items that are no text are left out, and named. Throws ApiError.
std::vector<AskedMessage> read_input(Fields& fields, std::vector<std::string>& left_out);

}  // namespace winnow::server
