// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/summary.h"

namespace winnow::eval {

/// One figure of one task as papers print it: a row for each method, a column for each budget. A method without a
/// budget has the same figure in each column.
struct Grid {
  struct Figure {
    std::string text;   ///< empty: not measured, or skipped
    bool best = false;  ///< of its budget
  };
  struct Row {
    std::string method;
    std::vector<Figure> figures;  ///< one for each budget
  };

  std::string title;
  std::vector<std::string> budgets;
  std::vector<Row> rows;  ///< those without a budget first, the others by their mean lead over the mean of all methods
};

/// Grids of each task and of each benchmark as a whole; none for fewer than two budgets.
std::vector<Grid> grids_of(const Summary& summary);

}  // namespace winnow::eval
