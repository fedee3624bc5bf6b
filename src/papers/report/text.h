// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "papers/result.h"

namespace winnow::papers {

/// The paper's figures, winnow's with their intervals, the orders and the missing parts, as Markdown.
std::string to_markdown(const std::vector<Result>& results);

/// Explains orders and how they are compared.
std::string how_compared();

/// The paper's claims, a sentence or more for each, with the names that orders use.
std::vector<std::string> claims_in_words(const Recipe& recipe);

/// The models, data, settings and hardware of the paper, in one sentence.
std::string used_in_words(const Recipe& recipe);

/// The paper's own figures as a table; "" if there are none.
std::string figures_in_paper(const Recipe& recipe);

/// A figure with the recipe's digits.
std::string shown(const Recipe& recipe, double figure);

/// "90.2 to 95.1", with the same digits; "" without an interval.
std::string interval(const Recipe& recipe, const eval::Mean& mean, const char* to);

/// Number of samples of a row's figures: "16", or "4 to 16" if cells differ; "" without figures.
std::string samples_in_words(const std::vector<std::optional<Cell>>& row);

/// A verdict: "too few samples (2 of 6)".
std::string verdict_in_words(const Compared& order);

}  // namespace winnow::papers
