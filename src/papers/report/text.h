// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "papers/result.h"

namespace winnow::papers {

/// The paper's figures, winnow's with their intervals, the orders and what is missing, as Markdown.
std::string to_markdown(const std::vector<Result>& results);

/// What the paper used, in one sentence.
std::string used_in_words(const Recipe& recipe);

/// The paper's own figures as a table; empty where there are none.
std::string figures_in_paper(const Recipe& recipe);

/// A figure with the recipe's digits; an interval with one less.
std::string shown(const Recipe& recipe, double figure);
std::string interval(const Recipe& recipe, const eval::Mean& mean, const char* to);

}  // namespace winnow::papers
