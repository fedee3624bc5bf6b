// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/summary.h"

namespace winnow::eval {

/// One figure of one task as papers have it: methods down, budgets across, a method without a budget with the same
/// figure under each.
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
  std::vector<Row>
      rows;  ///< those without a budget, then by how far they are ahead of the mean of all, as a mean over budgets
};

/// For each task and each benchmark as a whole; none where there are fewer than two budgets to set beside each other.
std::vector<Grid> grids_of(const Summary& summary);

}  // namespace winnow::eval
