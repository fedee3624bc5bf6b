// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eval/report/chart.h"
#include "papers/result.h"

namespace winnow::papers {

/// The rows against the columns' x, for each of the paper's models and then as measured; or the rows' series, as
/// measured. None for other kinds of plot.
std::vector<eval::Chart> charts_of(const Result& result);

/// A map of each row by the labels that the recipe names, as measured. None for other kinds of plot.
std::vector<eval::HeatMap> maps_of(const Result& result);

}  // namespace winnow::papers
