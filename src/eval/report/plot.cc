// SPDX-License-Identifier: Apache-2.0
#include "eval/report/plot.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/counted.h"
#include "eval/report/chart.h"
#include "eval/report/gnuplot.h"
#include "eval/report/placed_labels.h"
#include "eval/report/plot_axis.h"
#include "eval/report/plot_series.h"
#include "eval/report/script.h"
#include "eval/report/svg.h"

namespace winnow::eval {

namespace {

using Point = Tradeoff::Point;

constexpr int kWidth = 800;  // pixels, like the rest
constexpr int kLeft = 92;    // gnuplot leaves out a title of the y axis that has no room
constexpr int kTop = 46;
constexpr int kBottom = 396;
constexpr int kBelow = 80;  // for numbers and title of the x axis
constexpr int kLegendRow = 22;
constexpr int kFont = 15;
constexpr int kLabelFont = 13;
constexpr double kMark = 4;  // half of its width

std::string title_of(const Tradeoff& tradeoff) {
  const Better better = tradeoff.quality.better;
  return fmt::format("{}: {}{}; means of {}, 95 % intervals", tradeoff.tasks, tradeoff.quality.title,
                     better == Better::lower    ? " (lower is better)"
                     : better == Better::higher ? " (higher is better)"
                                                : "",
                     counted(tradeoff.samples, "sample"));
}

const char* cost_title(Cost cost) {
  return cost == Cost::bytes ? "cache after prefill, MiB" : "time of prefill, in units of the full cache's";
}

/// A name that fits into the picture. The description has all names in full.
std::string cut(const std::string& name, std::size_t most) {
  return name.size() <= most ? name : name.substr(0, most - 3) + "...";
}

/// Text beside a curve's end: the first curve of a method names it, the legend has the KV types.
std::string end_name(const PlotContents& contents, const PlotSeries& series) {
  constexpr std::size_t kMost = 26;
  const auto first = std::find_if(contents.series.begin(), contents.series.end(),
                                  [&](const PlotSeries& other) { return other.method.spec == series.method.spec; });
  if (series.method.spec == "full") return name_of(series.method);
  return &*first == &series ? cut(name_of(MethodKey{series.method.spec, "", "f16"}), kMost) : "";
}

/// The right end of the x axis, which leaves room for names of curves.
double right_end(const Tradeoff& tradeoff, const PlotContents& contents) {
  constexpr double kGap = 16;
  double widest = kGap;
  if (tradeoff.cost == Cost::bytes) {
    for (const auto& series : contents.series)
      widest = std::max(widest, width_of(end_name(contents, series), kLabelFont));
  }
  return kWidth - kGap - widest;
}

PlotAxis x_axis(const Tradeoff& tradeoff, const PlotContents& contents) {
  std::vector<double> costs;
  for (const auto& series : contents.series) {
    for (const Point* point : series.points) costs.push_back(point->cost);
  }
  const Scale scale = tradeoff.cost == Cost::bytes ? Scale::logarithmic : Scale::linear;
  return {"x", scale, costs, kLeft, right_end(tradeoff, contents)};
}

PlotAxis y_axis(const Tradeoff& tradeoff, const PlotContents& contents) {
  std::vector<double> heights;
  for (const auto& series : contents.series) {
    for (const Point* point : series.points) {
      for (const double value : {point->quality.low, point->quality.value, point->quality.high}) {
        if (tradeoff.quality.scale == Scale::linear || value > 0) heights.push_back(value);
      }
    }
  }
  if (contents.has_level) heights.push_back(tradeoff.full_cache->value);
  return {"y", tradeoff.quality.scale, heights, kBottom, kTop};
}

struct Wanted {
  const PlotSeries* series;
  const Point* point;
  std::string text;
};

/// Names of curves at their ends, or budgets beside points.
std::vector<Wanted> wanted_labels(const Tradeoff& tradeoff, const PlotContents& contents) {
  std::vector<Wanted> out;
  for (const auto& series : contents.series) {
    if (!series.has_own_colour()) continue;
    for (const Point* point : series.points) {
      if (tradeoff.cost == Cost::time) {
        out.push_back({&series, point, point->method.budget.empty() ? name_of(point->method) : point->method.budget});
      } else if (point == series.points.back() && !end_name(contents, series).empty()) {
        out.push_back({&series, point, end_name(contents, series)});
      }
    }
  }
  return out;
}

std::string labels_script(const Tradeoff& tradeoff, const PlotContents& contents, const PlotAxis& x, const PlotAxis& y,
                          int height) {
  using Align = Offset::Align;
  constexpr Offset kAroundPoint[] = {
      {Align::left, 8, 0}, {Align::right, -8, 0}, {Align::center, 0, -13}, {Align::center, 0, 13}};
  std::vector<Offset> beside_end = {{Align::left, 9, 0}};
  for (double away = 7; away <= 35; away += 7) {
    beside_end.push_back({Align::left, 9, away});
    beside_end.push_back({Align::left, 9, -away});
  }
  PlacedLabels labels({0, 0, kWidth, static_cast<double>(height)}, kLabelFont);
  for (const auto& series : contents.series) {
    for (const Point* point : series.points)
      labels.keep_free(x.pixel(point->cost), y.pixel(point->quality.value), kMark);
  }
  auto wanted = wanted_labels(tradeoff, contents);
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Wanted& a, const Wanted& b) { return a.point->quality.value > b.point->quality.value; });
  for (const auto& [series, point, text] : wanted)
    labels.place(x.pixel(point->cost), y.pixel(point->quality.value), text, series->colour,
                 tradeoff.cost == Cost::bytes ? std::span<const Offset>(beside_end) : kAroundPoint);
  return labels.script();
}

struct Legend {
  std::vector<std::string> entries;
  std::size_t columns = 1;

  int rows() const { return static_cast<int>((entries.size() + columns - 1) / columns); }
};

/// One entry for each colour, for the full cache's level, and for each KV type if there are several.
Legend legend_of(const Tradeoff& tradeoff, const PlotContents& contents) {
  Legend out;
  constexpr std::size_t kMost = 72;  // letters
  std::size_t longest = 0;
  const auto add = [&](const std::string& style, const std::string& full_name) {
    const std::string name = cut(full_name, kMost);
    out.entries.push_back(fmt::format("keyentry with {} title {}", style, plain(name)));
    longest = std::max(longest, name.size());
  };
  const char* const form = tradeoff.cost == Cost::bytes ? "lines" : "points pt 7 ps 0.7";
  const std::size_t named = std::min(contents.specs.size(), Chart::kColoured);
  for (std::size_t i = 0; i < named; ++i)
    add(fmt::format("{} lw 2 lc rgb '{}'", form, series_colour(i)), name_of(MethodKey{contents.specs[i], "", "f16"}));
  if (const std::size_t others = contents.specs.size() - named; others > 0)
    add(fmt::format("{} lw 1 lc rgb '{}'", form, kGrid), counted(others, "other method"));
  if (contents.has_level) add(fmt::format("lines dt 3 lw 1.5 lc rgb '{}'", kInk), "full cache");
  for (std::size_t i = 0; contents.kv_types.size() > 1 && i < contents.kv_types.size(); ++i)
    add(fmt::format("{} dt {} pt {} ps 0.7 lc rgb '{}'", tradeoff.cost == Cost::bytes ? "linespoints" : "points",
                    dash_of(i), mark_of(i), kInk),
        contents.kv_types[i]);
  constexpr double kSample = 60;  // pixels of an entry without its name
  const double columns = (kWidth - kLeft) / (kSample + width_of(std::string(longest, 'x'), kFont));
  out.columns = static_cast<std::size_t>(std::clamp(columns, 1.0, 5.0));
  return out;
}

/// The plots of one series and their data: intervals as vertical lines, then a curve or points.
void add_series(const Tradeoff& tradeoff, const PlotSeries& series, const PlotAxis& y, std::vector<std::string>& plots,
                std::string& data) {
  std::string bars;
  std::string points;
  for (const Point* point : series.points) {
    points += fmt::format("{:.6g} {:.6g}\n", point->cost, point->quality.value);
    const double low = std::max(point->quality.low, y.low());
    if (point->quality.has_interval() && point->quality.high > low)
      bars += fmt::format("{:.6g} {:.6g} {:.6g}\n", point->cost, low, point->quality.high - low);
  }
  if (!bars.empty()) {
    plots.push_back(fmt::format("'-' using 1:2:(0):3 with vectors nohead lw 1 lc rgb '{}' notitle", series.colour));
    data += bars + "e\n";
  }
  plots.push_back(
      fmt::format("'-' using 1:2 with {} pt {} ps 0.7 lc rgb '{}' notitle",
                  tradeoff.cost == Cost::bytes
                      ? fmt::format("linespoints dt {} lw {}", dash_of(series.kv_type), series.has_own_colour() ? 2 : 1)
                      : "points",
                  mark_of(series.kv_type), series.colour));
  data += points + "e\n";
}

/// The plot command. Series without colours come first, so that the others are above them.
std::string plot_script(const Tradeoff& tradeoff, const PlotContents& contents, const Legend& legend,
                        const PlotAxis& y) {
  std::vector<std::string> plots;
  std::string data;
  for (const bool coloured : {false, true}) {
    for (const auto& series : contents.series) {
      if (series.has_own_colour() == coloured) add_series(tradeoff, series, y, plots, data);
    }
  }
  if (contents.has_level)
    plots.push_back(fmt::format("{:.6g} with lines dt 3 lw 1.5 lc rgb '{}' notitle", tradeoff.full_cache->value, kInk));
  plots.insert(plots.end(), legend.entries.begin(), legend.entries.end());
  std::string out = "plot ";
  for (std::size_t i = 0; i < plots.size(); ++i) out += (i == 0 ? "" : ", ") + plots[i];
  return out + "\n" + data;
}

/// All figures, for readers who do not see the picture and for programs.
std::string figures_of(const Tradeoff& tradeoff) {
  std::string out = fmt::format("{}, over {}.", title_of(tradeoff), cost_title(tradeoff.cost));
  for (const auto& point : tradeoff.points) {
    out += fmt::format(" {}{}: {:.4g}, {:.4g}", name_of(point.method),
                       point.method.budget.empty() ? "" : " @ " + point.method.budget, point.cost, point.quality.value);
    if (point.quality.has_interval()) out += fmt::format(" ({:.4g} to {:.4g})", point.quality.low, point.quality.high);
    out += ";";
  }
  out.back() = '.';
  return out;
}

}  // namespace

std::string to_svg(const Tradeoff& tradeoff) {
  const auto contents = contents_of(tradeoff);
  const auto legend = legend_of(tradeoff, contents);
  const auto x = x_axis(tradeoff, contents);
  const auto y = y_axis(tradeoff, contents);
  const int height = kBottom + kBelow + kLegendRow * legend.rows();
  const auto across = [](double pixel) { return pixel / kWidth; };
  const auto up = [height](double pixel) { return 1 - pixel / height; };
  std::string script = begin_script(kWidth, height, kFont) + axis_title("x", cost_title(tradeoff.cost)) +
                       axis_title("y", tradeoff.quality.title) + x.script() + y.script();
  script += fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset tmargin at screen {:.5f}\nset bmargin at screen "
      "{:.5f}\nset title {} textcolor rgb '{}'\nset xlabel offset 0,0.4\nset ylabel offset 1.2,0\nset grid lc rgb '{}' "
      "lw 0.7\nset key below "
      "left Left reverse maxcols "
      "{} "
      "samplen 2.5\n",
      across(kLeft), across(right_end(tradeoff, contents)), up(kTop), up(kBottom), plain(title_of(tradeoff)), kInk,
      kGrid, legend.columns);
  script += labels_script(tradeoff, contents, x, y, height) + plot_script(tradeoff, contents, legend, y);
  return standalone(gnuplot_svgs({script}).front(), title_of(tradeoff), figures_of(tradeoff));
}

}  // namespace winnow::eval
