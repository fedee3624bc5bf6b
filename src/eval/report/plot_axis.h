// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "eval/report/quantity.h"

namespace winnow::eval {

/// An axis of a plot whose place in the picture is known.
class PlotAxis {
 public:
  /// Spans the values and a margin for marks. `name` is "x" or "y"; `from` and `to` are pixels. REQUIRES: at least one
  /// value; on a logarithmic scale all are above 0.
  PlotAxis(const char* name, Scale scale, std::span<const double> values, double from, double to);

  /// Values below the axis are at its low end.
  double pixel(double value) const;
  double low() const;
  /// Commands that set range, scale and tics.
  std::string script() const;

 private:
  double place(double value) const;

  const char* name_;
  Scale scale_;
  double low_ = 0;   ///< of place()
  double high_ = 1;  ///< likewise
  double from_;
  double to_;
};

}  // namespace winnow::eval
