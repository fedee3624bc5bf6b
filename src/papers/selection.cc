// SPDX-License-Identifier: Apache-2.0
#include "papers/selection.h"

#include <algorithm>
#include <charconv>

#include "papers/cells.h"

namespace winnow::papers {

namespace {

/// True if a sample can have a value. NAME@N is measured after N tokens of the sample's answer, if it has one. The last
/// token of a given answer is predicted, but not read.
bool is_reached(const std::string& value, const eval::Sample& sample) {
  const auto at = value.find('@');
  if (at == std::string::npos || sample.max_tokens == 0) return true;
  int tokens = 0;
  std::from_chars(value.data() + at + 1, value.data() + value.size(), tokens);
  return tokens <= sample.max_tokens + 1;
}

bool is_same(const CellKey& a, const CellKey& b) {
  return a.measure == b.measure && a.tasks == b.tasks && a.labels == b.labels && a.value == b.value &&
         a.series.empty() == b.series.empty();
}

}  // namespace

Selection::Selection(const Recipe& recipe) {
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    for (std::size_t c = 0; c < recipe.columns.size(); ++c) {
      const auto cell = recipe.cell(r, c);
      const auto is_known = [&](const CellKey& other) { return is_same(*cell, other); };
      if (cell && std::ranges::none_of(cells_, is_known)) cells_.push_back(*cell);
    }
  }
}

bool Selection::has(const Measure& measure, const std::string& task, const eval::Sample& sample) const {
  return std::ranges::any_of(cells_, [&](const CellKey& cell) {
    return cell.measure == &measure && std::ranges::find(cell.tasks, task) != cell.tasks.end() &&
           has_labels(sample.labels, cell.labels) && (!cell.series.empty() || is_reached(cell.value, sample));
  });
}

}  // namespace winnow::papers
