// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/answers/conversation.h"

namespace winnow::server {

/// Reads `instructions` and `input` into messages. Leaves out items that are not text, and names them. Throws ApiError.
std::vector<AskedMessage> read_input(Fields& fields, std::vector<std::string>& left_out);

}  // namespace winnow::server
