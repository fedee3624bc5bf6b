// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace winnow::papers {

/// Description of a recipe's violation of the schema (papers/schema.json), with the place; "" if there is none.
std::string violation(const nlohmann::json& recipe);

}  // namespace winnow::papers
