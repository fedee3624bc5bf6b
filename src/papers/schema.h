// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace winnow::papers {

/// Why a recipe is not as the schema (papers/schema.json) says, with the place in it; empty: it is.
std::string violation(const nlohmann::json& recipe);

}  // namespace winnow::papers
