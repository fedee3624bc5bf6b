// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace winnow::cli {

/// Writes JSON to stdout.
void write_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
