// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "papers/result.h"

namespace winnow::papers {

/// The paper's figures, winnow's with their intervals, the orders and what is missing, as Markdown.
std::string to_markdown(const std::vector<Result>& results);

/// What an order is and how it is compared.
std::string how_compared();

/// What the paper claims, a sentence or more for each claim, with the name by which orders call it.
std::vector<std::string> claims_in_words(const Recipe& recipe);

/// What the paper used, in one sentence.
std::string used_in_words(const Recipe& recipe);

/// The paper's own figures as a table; empty where there are none.
std::string figures_in_paper(const Recipe& recipe);

/// A figure with the recipe's digits.
std::string shown(const Recipe& recipe, double figure);

/// "90.2 to 95.1", with the same digits; empty where there is no interval.
std::string interval(const Recipe& recipe, const eval::Mean& mean, const char* to);

/// Samples of a row's figures: "16", or "4 to 16" of cells that differ; empty without figures.
std::string samples_in_words(const std::vector<std::optional<Cell>>& row);

/// "too few samples (2 of 6)"
std::string verdict_in_words(const Compared& order);

}  // namespace winnow::papers
