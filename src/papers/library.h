// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "papers/recipe.h"

namespace winnow::papers {

/// papers/schema.json
std::string_view schema_text();

/// The names of the built-in recipes: the paper's order, then tables and figures by their numbers.
const std::vector<std::string>& recipe_names();

/// A built-in recipe, or a file of the user's own. Throws UsageError for what is neither, InputError as parse_recipe().
Recipe load_recipe(const std::string& name_or_path);

}  // namespace winnow::papers
