// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "eval/report/chart.h"
#include "papers/orders.h"

namespace winnow::papers {

/// One plot of series.
struct Courses {
  std::string column;               ///< empty: one plot for all columns
  std::vector<eval::Curve> curves;  ///< of each row with a series
};

/// The measured results of a recipe with one model.
struct Result {
  Sheet sheet;
  Cells cells;
  std::vector<std::vector<std::optional<eval::Mean>>> figures;  ///< [row][column], in the paper's unit
  std::vector<Compared> orders;
  std::vector<Courses> courses;
  /// Mean score (0 to 1) of each row by the values of the plot's two labels; empty: not a heat map.
  std::vector<std::map<std::pair<std::string, std::string>, double>> maps;

  /// Missing parts: notes of the recipe and the run, then the incomplete cells.
  std::vector<std::string> missing() const;
};

/// `records` must outlive the result.
Result result_of(Sheet sheet, const std::vector<eval::Record>& records);

/// Verdicts on the paper's order of two rows, counted over columns.
struct Pair {
  std::string by;
  std::size_t more = 0;
  std::size_t less = 0;
  std::map<Verdict, int> count;
};
/// Groups the orders by source (model or claim) and rows.
std::vector<Pair> pairs_of(const std::vector<Compared>& orders);

/// "Of the paper's 30 orders, 20 agree, 3 disagree, 7 cannot be told." Leaves out verdicts without orders.
std::string in_words(const std::vector<Compared>& orders);

}  // namespace winnow::papers
