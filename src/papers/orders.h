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
  few_samples,      ///< fewer than kLeastSamples, or only one of a task
  nothing_evicted,  ///< both figures are the full cache's
  not_measured,
};

/// In the order of reports.
inline constexpr Verdict kVerdicts[] = {Verdict::agrees,      Verdict::disagrees,       Verdict::cannot_be_told,
                                        Verdict::few_samples, Verdict::nothing_evicted, Verdict::not_measured};

/// In a sign test, six samples with the same sign are just enough for 5 %.
inline constexpr int kLeastSamples = 6;

const char* name_of(Verdict verdict);

/// Compares the sign of the measured difference with the paper's. Undecided if the 95 % interval contains both signs.
Verdict judged(const std::optional<Difference>& more_minus_less);

/// Two rows in a column; the paper has the figure of `more` above that of `less`.
struct Compared {
  std::string by;        ///< the paper's model, or the claim's name
  std::size_t more = 0;  ///< rows
  std::size_t less = 0;
  std::size_t column = 0;
  std::optional<double> paper;     ///< the paper's difference
  std::optional<Difference> ours;  ///< in the paper's unit
  Verdict verdict = Verdict::not_measured;
};

/// [row][column]; empty for a cell without a counterpart.
using Cells = std::vector<std::vector<std::optional<Cell>>>;

/// "claim 1": a claim's name in reports.
std::string name_of_claim(std::size_t index);

/// All pairs of rows of one group (or of none) with different figures in the paper, in each column, for each of the
/// paper's models; then the claims' pairs.
std::vector<Compared> compared(const Recipe& recipe, const Cells& cells);

}  // namespace winnow::papers
