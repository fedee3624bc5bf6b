// SPDX-License-Identifier: Apache-2.0
#include "papers/report/figures.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>

namespace winnow::papers {

namespace {

using FigureOf = std::function<std::optional<double>(std::size_t row, std::size_t column)>;

eval::Chart empty_chart(const Recipe& recipe, const std::string& title) {
  eval::Chart out;
  out.title = title;
  out.x_title = recipe.plot.x;
  out.y_title = recipe.plot.y;
  out.x_scale = recipe.plot.scale;
  out.y_scale = recipe.plot.y_scale;
  return out;
}

/// A curve for each row of the group.
eval::Chart chart_of(const Recipe& recipe, const std::string& title, const std::string& group, const FigureOf& figure) {
  auto out = empty_chart(recipe, group.empty() ? title : fmt::format("{}, {}", title, group));
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    if (!recipe.rows[r].group.empty() && recipe.rows[r].group != group) continue;
    eval::Curve curve{recipe.rows[r].name, {}};
    for (std::size_t c = 0; c < recipe.columns.size(); ++c) {
      const auto y = figure(r, c);
      if (y && recipe.columns[c].x) curve.points.emplace_back(*recipe.columns[c].x, *y);
    }
    if (!curve.points.empty()) out.curves.push_back(std::move(curve));
  }
  for (const auto& column : recipe.columns) {
    if (column.x) out.x_tics.push_back(*column.x);
  }
  return out;
}

void add_charts(const Recipe& recipe, const std::string& title, const FigureOf& figure, std::vector<eval::Chart>& to) {
  std::vector<std::string> groups;
  for (const auto& row : recipe.rows) {
    const bool is_known = std::find(groups.begin(), groups.end(), row.group) != groups.end();
    if (!row.group.empty() && !is_known) groups.push_back(row.group);
  }
  if (groups.empty()) groups.emplace_back();
  for (const auto& group : groups) {
    auto chart = chart_of(recipe, title, group, figure);
    if (!chart.curves.empty()) to.push_back(std::move(chart));
  }
}

std::vector<eval::Chart> charts_of_series(const Result& result) {
  std::vector<eval::Chart> out;
  for (const auto& [column, curves] : result.courses) {
    const auto title = result.sheet.model + " (winnow)";
    out.push_back(empty_chart(result.sheet.recipe, column.empty() ? title : fmt::format("{}, {}", title, column)));
    out.back().curves = curves;
  }
  return out;
}

/// Compares numbers by value, other texts alphabetically.
bool precedes_by_number(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// The values of a label in the plan.
std::vector<std::string> label_values(const Sheet& sheet, const std::string& label) {
  std::vector<std::string> out;
  for (const auto& planned : sheet.planned) {
    const auto found = planned.labels.find(label);
    if (found == planned.labels.end()) continue;
    if (std::find(out.begin(), out.end(), found->second) == out.end()) out.push_back(found->second);
  }
  std::sort(out.begin(), out.end(), precedes_by_number);
  return out;
}

/// Every nth name, so that they stay legible.
std::vector<std::string> thinned(std::vector<std::string> names, std::size_t most) {
  const auto every = (names.size() + most - 1) / most;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i % every != 0) names[i].clear();
  }
  return names;
}

}  // namespace

std::vector<eval::Chart> charts_of(const Result& result) {
  const Recipe& recipe = result.sheet.recipe;
  std::vector<eval::Chart> out;
  if (recipe.plot.kind == PlotKind::table || recipe.plot.kind == PlotKind::heat_map) return out;
  if (recipe.plot.kind != PlotKind::curves) return charts_of_series(result);
  for (const auto& figures : recipe.figures)
    add_charts(
        recipe, figures.model + " (paper)", [&](auto r, auto c) { return figures.values[r][c]; }, out);
  const auto measured = [&](std::size_t r, std::size_t c) {
    const auto& mean = result.figures[r][c];
    return mean ? std::optional(mean->value) : std::nullopt;
  };
  add_charts(recipe, result.sheet.model + " (winnow)", measured, out);
  return out;
}

std::vector<eval::HeatMap> maps_of(const Result& result) {
  constexpr std::size_t kNames = 6;  // of an axis
  const Recipe& recipe = result.sheet.recipe;
  std::vector<eval::HeatMap> out;
  if (recipe.plot.kind != PlotKind::heat_map) return out;
  for (std::size_t r = 0; r < result.maps.size(); ++r) {
    eval::HeatMap map;
    const auto key = recipe.cell(r, 0);
    if (!key) continue;
    const auto& budget = key->method.budget();
    map.title = recipe.rows[r].name + (budget ? ", budget " + budget->print() : "");
    map.x_title = eval::with_unit(recipe.plot.x, key->tasks.front());
    map.y_title = eval::with_unit(recipe.plot.y, key->tasks.front());
    const auto columns = label_values(result.sheet, recipe.plot.x);
    const auto rows = label_values(result.sheet, recipe.plot.y);
    map.columns = thinned(columns, kNames);
    map.rows = thinned(rows, kNames);
    for (std::size_t x = 0; x < columns.size(); ++x) {
      for (std::size_t y = 0; y < rows.size(); ++y) {
        const auto found = result.maps[r].find({columns[x], rows[y]});
        if (found != result.maps[r].end()) map.cells[{x, y}] = found->second;
      }
    }
    if (!map.cells.empty()) out.push_back(std::move(map));
  }
  return out;
}

}  // namespace winnow::papers
