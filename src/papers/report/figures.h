// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eval/report/chart.h"
#include "papers/result.h"

namespace winnow::papers {

/// The rows against the columns' x, for each of the paper's models and then as measured; or the rows' measured series.
/// None for other kinds of plots.
std::vector<eval::Chart> charts_of(const Result& result);

/// A measured map of each row by the recipe's labels. None for other kinds of plots.
std::vector<eval::HeatMap> maps_of(const Result& result);

}  // namespace winnow::papers
