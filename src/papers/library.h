// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "papers/recipe.h"

namespace winnow::papers {

/// The text of papers/schema.json.
std::string_view schema_text();

/// Names of the built-in recipes, by paper, then tables and figures by number.
const std::vector<std::string>& recipe_names();

/// Loads a built-in recipe, or the user's file. Throws UsageError if it is neither, InputError as parse_recipe().
Recipe load_recipe(const std::string& name_or_path);

}  // namespace winnow::papers
