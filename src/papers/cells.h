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

/// True if `all` has all of the wanted labels.
bool has_labels(const Labels& all, const Labels& wanted);

/// Measured values of one cell.
struct Cell {
  struct Value {
    double value = 0;
    const eval::Record* record = nullptr;  ///< the value's record
    bool is_full = false;                  ///< the record is the full cache's, which stands for the cell's method
  };

  /// [task][sample id and hash of the prompt] Cells are compared on the samples that both have.
  std::map<std::string, std::map<std::string, Value>> values;
  int planned = 0;   ///< samples
  int measured = 0;  ///< of the planned samples, with or without a figure
  int skipped = 0;   ///< of the measured samples, those without a figure
  int full = 0;      ///< samples with the full cache's figure

  int samples() const { return measured - skipped; }
  bool is_whole() const { return measured >= planned; }
  bool is_full() const { return full > 0 && full == samples(); }
};

/// The mean of the tasks' means, with its interval; empty without a figure.
std::optional<eval::Mean> mean_of(const Cell& cell);

/// The mean of the tasks' mean differences a - b, over the samples that both have.
struct Difference {
  eval::Mean mean;
  int samples = 0;
  int same = 0;  ///< of these, samples where both figures are of the same record, since nothing was evicted
};
std::optional<Difference> difference(const Cell& a, const Cell& b);

/// Records of a sheet's run, or of another run with the same settings. A method is not measured on a prompt that fits
/// into its budget: nothing would be evicted, so the full cache's figure, if any, stands in its place. Cells point to
/// the records, which must outlive them.
class Found {
 public:
  Found(const Sheet& sheet, const std::vector<eval::Record>& records);

  Cell cell(const CellKey& key) const;
  /// The series of the cell's records, or of the full cache's records that stand in their place.
  std::vector<std::vector<double>> series(const CellKey& key) const;

 private:
  /// The full cache's record of the same prompt.
  const eval::Record* full(const eval::Record& record) const;
  /// The record to show: the record itself, the full cache's if the prompt fits into the budget, or none.
  const eval::Record* shown(const eval::Record& record) const;
  /// The plan's samples for a cell.
  std::vector<const Planned*> planned(const CellKey& key) const;
  /// The cell's records of some planned samples.
  std::vector<const eval::Record*> records(const CellKey& key, const Planned& planned) const;

  const Sheet& sheet_;
  std::map<std::string, std::vector<const eval::Record*>> by_task_;  ///< by the task's name in records
  std::map<eval::Key, const eval::Record*> by_key_;
};

}  // namespace winnow::papers
