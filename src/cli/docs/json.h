// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace winnow::cli {

/// JSON on stdout.
void write_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
