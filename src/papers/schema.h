// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace winnow::papers {

/// How a recipe violates the schema (papers/schema.json), with the place; "" if it does not.
std::string violation(const nlohmann::json& recipe);

}  // namespace winnow::papers
