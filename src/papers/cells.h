// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/record.h"
#include "eval/statistics.h"
#include "papers/sheet.h"

namespace winnow::papers {

/// What was measured for one cell.
struct Cell {
  /// Task, then sample (with what was read of it): two cells are compared on the samples that both have.
  std::map<std::string, std::map<std::string, double>> values;
  int planned = 0;   ///< samples
  int measured = 0;  ///< of them, also without a figure
  int skipped = 0;   ///< of these, those without a figure

  bool is_whole() const { return measured >= planned; }
};

/// The mean of the tasks' means, with its interval; nothing without a figure.
std::optional<eval::Mean> mean_of(const Cell& cell);

/// The mean of a - b over the samples of both, of the tasks' means; and of how many samples.
struct Difference {
  eval::Mean mean;
  int samples = 0;
};
std::optional<Difference> difference(const Cell& a, const Cell& b);

/// The records that a sheet's run has made, or another with the same settings. A prompt that fits into the budget was
/// not measured with it: the full cache's figure stands for it, where there is one, since nothing would be evicted.
class Found {
 public:
  Found(const Sheet& sheet, const std::vector<eval::Record>& records);

  Cell cell(const CellKey& key) const;
  /// The series of the cell's records.
  std::vector<std::vector<double>> series(const CellKey& key) const;

 private:
  /// The full cache's record of the same prompt.
  const eval::Record* full(const eval::Record& record) const;
  /// The lines of the plan that a cell is about.
  std::vector<const Planned*> planned(const CellKey& key) const;
  /// The cell's records among those of one line of the plan.
  std::vector<const eval::Record*> records(const CellKey& key, const Planned& planned) const;

  const Sheet& sheet_;
  std::map<std::string, std::vector<const eval::Record*>> by_task_;  ///< as records name it
  std::map<eval::Key, const eval::Record*> by_key_;
};

}  // namespace winnow::papers
