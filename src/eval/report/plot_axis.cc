// SPDX-License-Identifier: Apache-2.0
#include "eval/report/plot_axis.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace winnow::eval {

PlotAxis::PlotAxis(const char* name, Scale scale, std::span<const double> values, double from, double to)
    : name_(name), scale_(scale), from_(from), to_(to) {
  constexpr double kMargin = 0.04;    // of the axis
  constexpr double kNarrowest = 0.1;  // for equal values
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  low_ = place(*least);
  high_ = place(*most);
  const double margin = std::max(kMargin * (high_ - low_), high_ > low_ ? 0.0 : kNarrowest);
  low_ -= margin;
  high_ += margin;
}

/// Linear in pixels.
double PlotAxis::place(double value) const { return scale_ == Scale::linear ? value : std::log10(value); }

double PlotAxis::low() const { return scale_ == Scale::linear ? low_ : std::pow(10, low_); }

double PlotAxis::pixel(double value) const {
  const double at = value <= low() ? low_ : place(value);
  return from_ + (to_ - from_) * (at - low_) / (high_ - low_);
}

std::string PlotAxis::script() const {
  if (scale_ == Scale::linear) return fmt::format("set {}range [{:.6g}:{:.6g}]\n", name_, low_, high_);
  std::string tics;
  for (int decade = static_cast<int>(std::floor(low_)); decade <= std::floor(high_); ++decade) {
    for (const int digit : {1, 2, 5}) {
      const double tic = digit * std::pow(10, decade);
      if (place(tic) >= low_ && place(tic) <= high_) tics += fmt::format("{}{:.6g}", tics.empty() ? "" : ",", tic);
    }
  }
  return fmt::format("set {0}range [{1:.6g}:{2:.6g}]\nset logscale {0} 10\nset format {0} '%g'\n{3}", name_, low(),
                     std::pow(10, high_), tics.empty() ? "" : fmt::format("set {}tics ({})\n", name_, tics));
}

}  // namespace winnow::eval
