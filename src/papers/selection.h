// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/sample.h"
#include "papers/recipe.h"

namespace winnow::papers {

/// The samples that a recipe shows in its cells. Plots only use cells.
class Selection {
 public:
  /// `recipe` must outlive it.
  explicit Selection(const Recipe& recipe);

  /// True if some cell uses the sample: it has the cell's measure, task and labels, and is long enough for the cell's
  /// value.
  bool has(const Measure& measure, const std::string& task, const eval::Sample& sample) const;

 private:
  std::vector<CellKey> cells_;  ///< without those that differ only in their methods
};

}  // namespace winnow::papers
