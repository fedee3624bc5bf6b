// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/report/quantity.h"

namespace winnow::eval {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< ascending x; kLift where the curve is broken
};

inline constexpr std::pair<double, double> kLift = {std::numeric_limits<double>::infinity(), 0};

/// Curves over one axis. The first kColoured have colours and names, the others are thin and grey.
struct Chart {
  static constexpr std::size_t kColoured = 8;

  std::string title;
  std::string x_title;
  std::string y_title;
  Scale x_scale = Scale::logarithmic;
  Scale y_scale = Scale::linear;
  std::vector<double> x_tics;  ///< empty: gnuplot's own
  std::vector<Curve> curves;
  std::optional<double> level;  ///< the full cache's, a dashed line
};

/// Scores (0 to 1) by two labels.
struct HeatMap {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::map<std::pair<std::size_t, std::size_t>, double> cells;  ///< by column and row
};

/// gnuplot scripts that draw them.
std::string script_of(const Chart& chart);
std::string script_of(const HeatMap& map);

}  // namespace winnow::eval
