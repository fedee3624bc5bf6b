// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "papers/cells.h"

namespace winnow::papers {

enum class Verdict : std::uint8_t {
  agrees,
  disagrees,
  cannot_be_told,
  few_samples,      ///< fewer than kLeastSamples, or a single one of a task
  nothing_evicted,  ///< both figures are the full cache's
  not_measured,
};

/// In the order of reports.
inline constexpr Verdict kVerdicts[] = {Verdict::agrees,      Verdict::disagrees,       Verdict::cannot_be_told,
                                        Verdict::few_samples, Verdict::nothing_evicted, Verdict::not_measured};

/// By a sign test, even six samples that all say the same reach 5 % only just.
inline constexpr int kLeastSamples = 6;

const char* name_of(Verdict verdict);

/// Whether the difference that was measured has the sign that the paper says. It cannot be told where the interval of
/// 95 % has both signs.
Verdict judged(const std::optional<Difference>& more_minus_less);

/// Two rows in a column, of which the paper says that one's figure is above the other's.
struct Compared {
  std::string by;        ///< the paper's model, or the claim's name
  std::size_t more = 0;  ///< rows
  std::size_t less = 0;
  std::size_t column = 0;
  std::optional<double> paper;     ///< the difference there
  std::optional<Difference> ours;  ///< in the paper's unit
  Verdict verdict = Verdict::not_measured;
};

/// [row][column]; nothing where a cell has no counterpart.
using Cells = std::vector<std::vector<std::optional<Cell>>>;

/// "claim 1": what reports call a recipe's claim.
std::string name_of_claim(std::size_t index);

/// All pairs of rows of one group (or of none) whose figures in the paper differ, in each column, for each of the
/// paper's models; then the claims' pairs.
std::vector<Compared> compared(const Recipe& recipe, const Cells& cells);

}  // namespace winnow::papers
