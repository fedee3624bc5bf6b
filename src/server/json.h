// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace winnow::server {

/// Members keep their order: that of a schema's properties is the order in which an answer has them. Finding a member
/// takes time by their number, which field_limits() bounds.
using Json = nlohmann::ordered_json;

}  // namespace winnow::server
