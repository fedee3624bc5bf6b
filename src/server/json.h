// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace winnow::server {

/// Ordered, since the order of a schema's properties is the order in which an answer has them. Finding a member takes
/// linear time; field_limits() bounds the number of members.
using Json = nlohmann::ordered_json;

}  // namespace winnow::server
