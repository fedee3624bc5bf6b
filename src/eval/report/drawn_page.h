// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/report/chart.h"

namespace winnow::eval {

/// Collects a page with placeholders for its pictures, so that one gnuplot process draws them all.
class DrawnPage {
 public:
  /// Begins a self-contained page with the reports' style.
  explicit DrawnPage(const std::string& title);

  void add(const std::string& html) { html_ += html; }
  void add_figure(const Chart& chart) { add_figure(chart.title, script_of(chart)); }
  void add_figure(const HeatMap& map) { add_figure(map.title, script_of(map)); }
  /// Adds charts side by side below a heading and a note; adds nothing if there are none.
  void add_charts(const std::string& title, const std::string& says, const std::vector<Chart>& charts);

  /// The page with its pictures. Throws what gnuplot_svgs() throws.
  std::string drawn() const;

 private:
  void add_figure(const std::string& title, const std::string& script);

  std::string html_;
  std::vector<std::string> scripts_;
  std::vector<std::string> titles_;
};

/// Text in place of plots if gnuplot is missing.
extern const char* const kNoGnuplot;

}  // namespace winnow::eval
