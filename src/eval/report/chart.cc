// SPDX-License-Identifier: Apache-2.0
#include "eval/report/chart.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/report/script.h"

namespace winnow::eval {

namespace {

std::string data_of(const Curve& curve) {
  std::string out;
  for (const auto& [x, y] : curve.points) out += std::isinf(x) ? "\n" : fmt::format("{:.6g} {:.6g}\n", x, y);
  return out + "e\n";
}

/// Sets the x range to that of the points, plus a margin for their marks: gnuplot would extend it to the next tics.
std::string x_range_of(const Chart& chart) {
  constexpr double kBeyond = 0.02;  // of the axis
  const bool is_log = chart.x_scale == Scale::logarithmic;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const auto& curve : chart.curves) {
    for (const auto& [x, y] : curve.points) {
      const double place = is_log ? std::log2(x) : x;
      if (!std::isfinite(place)) continue;
      low = std::min(low, place);
      high = std::max(high, place);
    }
  }
  if (!(low < high)) return "";
  const double margin = kBeyond * (high - low);
  const auto shown = [is_log](double x) { return is_log ? std::exp2(x) : x; };
  return fmt::format("set xrange [{:.6g}:{:.6g}]\n", shown(low - margin), shown(high + margin));
}

/// False for curves with so many points that their marks would overlap and hide the line.
bool is_marked(const Curve& curve) {
  constexpr std::size_t kMost = 50;
  return curve.points.size() <= kMost;
}

std::string tics_of(const std::vector<double>& tics) {
  std::string out;
  for (const double x : tics) out += fmt::format("{}{:.6g}", out.empty() ? "set xtics (" : ",", x);
  return out.empty() ? "" : out + ")\n";
}

std::string labels_of(const char* axis, const std::vector<std::string>& names) {
  std::string out = fmt::format("set {}tics (", axis);
  for (std::size_t i = 0; i < names.size(); ++i) out += fmt::format("{}{} {}", i == 0 ? "" : ",", plain(names[i]), i);
  return out + ")\n";
}

}  // namespace

std::string script_of(const Chart& chart) {
  constexpr std::size_t kShort = 24;  // letters of the longest name that fits into two columns
  const std::size_t named = std::min(chart.curves.size(), Chart::kColoured);
  std::size_t longest = 0;
  for (std::size_t i = 0; i < named; ++i) longest = std::max(longest, chart.curves[i].name.size());
  const std::size_t columns = longest <= kShort ? 2 : 1;
  const std::size_t rows = (named + (chart.level ? 1 : 0) + columns - 1) / columns;
  std::string out = begin_script(560, 342 + 19 * static_cast<int>(rows), 15) + axis_title("x", chart.x_title) +
                    axis_title("y", chart.y_title) + tics_of(chart.x_tics);
  out += fmt::format(
      "set grid lc rgb '{}' lw 0.7\nset xlabel offset 0,0.4\nset key below left Left reverse maxcols {} samplen 2 "
      "width {} height 0.6\n",                          // below the axis title
      kGrid, columns, -static_cast<int>(longest) / 4);  // gnuplot overestimates the width of letters
  out += x_range_of(chart);
  if (chart.x_scale == Scale::logarithmic) out += "set logscale x 2\nset format x '%g'\n";
  if (chart.y_scale == Scale::logarithmic) out += "set logscale y 10\nset format y '%g'\n";
  std::string plots;
  std::string data;
  for (std::size_t i = chart.curves.size(); i-- > named;) {
    plots += fmt::format("{}'-' using 1:2 with lines lw 1 lc rgb '{}' notitle", plots.empty() ? "plot " : ", ", kGrid);
    data += data_of(chart.curves[i]);
  }
  for (std::size_t i = 0; i < named; ++i) {
    plots += fmt::format("{}'-' using 1:2 with {} lw 2{} lc rgb '{}' title {}", plots.empty() ? "plot " : ", ",
                         is_marked(chart.curves[i]) ? "linespoints" : "lines",
                         is_marked(chart.curves[i]) ? fmt::format(" pt {} ps 0.6", 4 + i) : "", series_colour(i),
                         plain(chart.curves[i].name));
    data += data_of(chart.curves[i]);
  }
  if (chart.level)
    plots += fmt::format("{}{:.6g} with lines dt 2 lw 1.5 lc rgb '{}' title 'full cache'",
                         plots.empty() ? "plot " : ", ", *chart.level, kInk);
  return out + plots + "\n" + data;
}

std::string script_of(const HeatMap& map) {
  constexpr std::size_t kMostNumbers = 8;  // in a row; more would not be legible
  std::string out = begin_script(230, 180, 13) + axis_title("x", map.x_title) + axis_title("y", map.y_title) +
                    labels_of("x", map.columns) + labels_of("y", map.rows);
  out += fmt::format(
      "set tics scale 0\nset lmargin 6.5\nset rmargin 0.5\nset tmargin 0.3\nset bmargin 2.6\nset xlabel offset "
      "0,0.7\nset ylabel offset "
      "1,0\nset xrange [-0.5:{}-0.5]\nset yrange [{}-0.5:-0.5]\nset cbrange [0:1]\nunset colorbox\nset border 0\n"
      "set palette defined (0 '#ee6677', 0.5 '#ebc64d', 1 '#3fbf8f')\n",
      map.columns.size(), map.rows.size());
  out +=
      "plot '-' using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fs solid 1 noborder lc palette notitle";
  const bool numbers = map.columns.size() <= kMostNumbers;
  if (numbers) out += ", '-' using 1:2:(sprintf('%.0f',100*$3)) with labels tc rgb '#101010' notitle";
  std::string data;
  for (const auto& [place, score] : map.cells) data += fmt::format("{} {} {:.4g}\n", place.first, place.second, score);
  data += "e\n";
  return out + "\n" + data + (numbers ? data : "");
}

}  // namespace winnow::eval
