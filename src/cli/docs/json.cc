// SPDX-License-Identifier: Apache-2.0
#include "cli/docs/json.h"

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/run/report.h"

namespace winnow::cli {

void write_json(const nlohmann::ordered_json& json) { write_stdout(dump(json, 2)); }

}  // namespace winnow::cli
