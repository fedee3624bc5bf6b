// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/sample.h"
#include "papers/recipe.h"

namespace winnow::papers {

/// Which samples a recipe shows. Its plots are of its cells, so these tell.
class Selection {
 public:
  /// `recipe` must outlive it.
  explicit Selection(const Recipe& recipe);

  /// Whether some cell has a figure of the sample: it is of the cell's measure, task and labels, and long enough for
  /// the cell's value.
  bool has(const Measure& measure, const std::string& task, const eval::Sample& sample) const;

 private:
  std::vector<CellKey> cells_;  ///< one of those that differ in their methods only
};

}  // namespace winnow::papers
