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

using Labels = std::map<std::string, std::string>;

/// Whether all of the wanted labels are there.
bool has_labels(const Labels& all, const Labels& wanted);

/// What was measured for one cell.
struct Cell {
  struct Value {
    double value = 0;
    const eval::Record* record = nullptr;  ///< that it is of
    bool is_full = false;                  ///< it is of the full cache, whose figure stands for the cell's method
  };

  /// Task, then sample (with what was read of it): two cells are compared on the samples that both have.
  std::map<std::string, std::map<std::string, Value>> values;
  int planned = 0;   ///< samples
  int measured = 0;  ///< of them, also without a figure
  int skipped = 0;   ///< of these, those without a figure
  int full = 0;      ///< those for which the full cache's figure stands

  int samples() const { return measured - skipped; }
  bool is_whole() const { return measured >= planned; }
  bool is_full() const { return full > 0 && full == samples(); }
};

/// The mean of the tasks' means, with its interval; nothing without a figure.
std::optional<eval::Mean> mean_of(const Cell& cell);

/// The mean of a - b over the samples of both, of the tasks' means.
struct Difference {
  eval::Mean mean;
  int samples = 0;
  int same = 0;  ///< of these, those of which both figures are the same record's, since nothing was evicted
};
std::optional<Difference> difference(const Cell& a, const Cell& b);

/// The records that a sheet's run has made, or another with the same settings. A prompt that fits into the budget was
/// not measured with it: the full cache's figure stands for it, where there is one, since nothing would be evicted.
/// Cells refer to the records, which must outlive them.
class Found {
 public:
  Found(const Sheet& sheet, const std::vector<eval::Record>& records);

  Cell cell(const CellKey& key) const;
  /// The series of the cell's records, or of those that stand for them.
  std::vector<std::vector<double>> series(const CellKey& key) const;

 private:
  /// The full cache's record of the same prompt.
  const eval::Record* full(const eval::Record& record) const;
  /// The record whose figures are shown: itself, the full cache's where the prompt fits into the budget, or none.
  const eval::Record* shown(const eval::Record& record) const;
  /// The lines of the plan that a cell is about.
  std::vector<const Planned*> planned(const CellKey& key) const;
  /// The cell's records among those of one line of the plan.
  std::vector<const eval::Record*> records(const CellKey& key, const Planned& planned) const;

  const Sheet& sheet_;
  std::map<std::string, std::vector<const eval::Record*>> by_task_;  ///< as records name it
  std::map<eval::Key, const eval::Record*> by_key_;
};

}  // namespace winnow::papers
