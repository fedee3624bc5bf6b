// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace winnow::papers {

struct RecipeText {
  std::string_view name;  ///< PAPER/NAME
  std::string_view text;
};

/// The files of papers/, which CMake embeds in the program.
extern const std::string_view kSchema;
extern const std::vector<RecipeText> kRecipes;

}  // namespace winnow::papers
