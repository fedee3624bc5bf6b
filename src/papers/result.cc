// SPDX-License-Identifier: Apache-2.0
#include "papers/result.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/as_size.h"

namespace winnow::papers {

namespace {

/// The missing cells: "all of SnapKV; H2O: 128, 256".
std::string cells_missing(const Recipe& recipe, const Cells& cells,
                          const std::function<bool(const Cell&)>& is_missing) {
  std::string out;
  for (std::size_t r = 0; r < cells.size(); ++r) {
    std::vector<std::string> names;
    for (std::size_t c = 0; c < cells[r].size(); ++c) {
      if (cells[r][c] && is_missing(*cells[r][c])) names.push_back(recipe.columns[c].name);
    }
    if (names.empty()) continue;
    const auto& row = recipe.rows[r];
    const auto name = row.group.empty() ? row.name : fmt::format("{}, {}", row.name, row.group);
    out += fmt::format("{}{}{}", out.empty() ? "" : "; ", name,
                       names.size() == recipe.columns.size() ? "" : fmt::format(" ({})", fmt::join(names, ", ")));
  }
  return out;
}

void add(std::vector<std::string>& to, const char* what, const std::string& cells) {
  if (!cells.empty()) to.push_back(what + cells);
}

}  // namespace

std::vector<std::string> Result::missing() const {
  const Recipe& recipe = sheet.recipe;
  std::vector<std::string> out = recipe.missing;
  out.insert(out.end(), sheet.notes.begin(), sheet.notes.end());
  for (const auto* lines : {&recipe.rows, &recipe.columns}) {
    for (const auto& line : *lines) {
      if (!line.not_measured.empty()) out.push_back(fmt::format("{}: {}", line.name, line.not_measured));
    }
  }
  add(out, "Not planned, because there are no samples for them: ", cells_missing(recipe, cells, [](const Cell& cell) {
        return cell.planned == 0;
      }));
  add(out, "Not measured yet: ", cells_missing(recipe, cells, [](const Cell& cell) {
        return cell.planned > 0 && cell.measured == 0;
      }));
  add(out, "Partly measured: ", cells_missing(recipe, cells, [](const Cell& cell) {
        return cell.measured > 0 && !cell.is_whole();
      }));
  return out;
}

namespace {

std::map<std::pair<std::string, std::string>, double> map_of(const Sheet& sheet, const Found& found, CellKey key) {
  const Plot& plot = sheet.recipe.plot;
  std::map<std::pair<std::string, std::string>, double> out;
  for (const auto& planned : sheet.planned) {
    const auto x = planned.labels.find(plot.x);
    const auto y = planned.labels.find(plot.y);
    if (x == planned.labels.end() || y == planned.labels.end()) continue;
    key.labels[plot.x] = x->second;
    key.labels[plot.y] = y->second;
    const auto mean = mean_of(found.cell(key));
    if (mean) out[{x->second, y->second}] = mean->value;
  }
  return out;
}

using Points = std::vector<std::pair<double, double>>;

/// Means by index, each over the series that are long enough.
Points means_of(const std::vector<std::vector<double>>& series) {
  std::map<std::size_t, std::vector<double>> by_place;
  for (const auto& one : series) {
    for (std::size_t i = 0; i < one.size(); ++i) by_place[i + 1].push_back(one[i]);
  }
  Points out;
  for (const auto& [place, values] : by_place)
    out.emplace_back(static_cast<double>(place),
                     std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
  return out;
}

Points histogram_of(const std::vector<std::vector<double>>& series) {
  std::map<double, double> count;
  for (const auto& one : series) {
    for (const double value : one) ++count[std::round(value)];
  }
  return {count.begin(), count.end()};
}

/// A stroke for each layer around its number, with its heads in ascending order. Empty if the number of layers is
/// unknown.
Points sorted_by_layer(const Points& heads, int layers) {
  constexpr double kWidth = 0.8;  // width of a stroke
  if (layers <= 0 || heads.size() % as_size(layers) != 0) return {};
  const std::size_t count = heads.size() / as_size(layers);
  Points out;
  for (std::size_t first = 0; first < heads.size(); first += count) {
    std::vector<double> heights;
    for (std::size_t i = 0; i < count; ++i) heights.push_back(heads[first + i].second);
    std::sort(heights.begin(), heights.end());
    const double layer = 1 + static_cast<double>(first / count);
    for (std::size_t i = 0; i < count; ++i)
      out.emplace_back(layer + kWidth * ((static_cast<double>(i) + 0.5) / static_cast<double>(count) - 0.5),
                       heights[i]);
    out.push_back(eval::kLift);
  }
  return out;
}

Points course_of(const Sheet& sheet, const Found& found, const std::optional<CellKey>& key) {
  if (!key || key->series.empty()) return {};
  const auto series = found.series(*key);
  const auto kind = sheet.recipe.plot.kind;
  if (kind == PlotKind::histogram) return histogram_of(series);
  return kind == PlotKind::heads ? sorted_by_layer(means_of(series), sheet.layers) : means_of(series);
}

/// Columns with series of their own: columns that differ only in their figures share them.
std::vector<std::size_t> columns_of_series(const Recipe& recipe) {
  std::vector<std::size_t> out;
  std::vector<Select> known;
  for (std::size_t c = 0; c < recipe.columns.size(); ++c) {
    Select select = recipe.columns[c].select;
    select.value.clear();
    if (std::find(known.begin(), known.end(), select) != known.end()) continue;
    known.push_back(std::move(select));
    out.push_back(c);
  }
  return out;
}

/// Adds a count of 0 for numbers that only other histograms have.
void fill_gaps(std::vector<eval::Curve>& histograms) {
  std::set<double> numbers;
  for (const auto& one : histograms) {
    for (const auto& [number, count] : one.points) numbers.insert(number);
  }
  for (auto& one : histograms) {
    std::map<double, double> counts(one.points.begin(), one.points.end());
    for (const double number : numbers) counts.try_emplace(number, 0);
    one.points.assign(counts.begin(), counts.end());
  }
}

std::vector<Courses> courses_of(const Sheet& sheet, const Found& found) {
  const Recipe& recipe = sheet.recipe;
  const auto columns = columns_of_series(recipe);
  std::vector<Courses> out;
  for (const auto column : columns) {
    Courses courses{columns.size() > 1 ? recipe.columns[column].name : "", {}};
    const auto add = [&](const std::string& name, const std::optional<CellKey>& key) {
      auto points = course_of(sheet, found, key);
      if (!points.empty()) courses.curves.push_back({name, std::move(points)});
    };
    if (auto key = recipe.rows.empty() ? std::nullopt : recipe.cell(0, column); key && recipe.plot.reference) {
      key->series = recipe.plot.reference->series;
      add(recipe.plot.reference->name, key);
    }
    for (std::size_t r = 0; r < recipe.rows.size(); ++r) add(recipe.rows[r].name, recipe.cell(r, column));
    if (recipe.plot.kind == PlotKind::histogram) fill_gaps(courses.curves);
    if (!courses.curves.empty()) out.push_back(std::move(courses));
  }
  return out;
}

}  // namespace

Result result_of(Sheet sheet, const std::vector<eval::Record>& records) {
  Result out;
  out.sheet = std::move(sheet);
  const Recipe& recipe = out.sheet.recipe;
  const Found found(out.sheet, records);
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    auto& cells = out.cells.emplace_back();
    auto& figures = out.figures.emplace_back();
    for (std::size_t c = 0; c < recipe.columns.size(); ++c) {
      const auto key = recipe.cell(r, c);
      cells.push_back(key ? std::optional(found.cell(*key)) : std::nullopt);
      const auto mean = cells.back() ? mean_of(*cells.back()) : std::nullopt;
      const double unit = recipe.columns[c].unit;
      figures.push_back(mean ? std::optional(mean->times(unit)) : std::nullopt);
    }
  }
  out.orders = compared(recipe, out.cells);
  out.courses = courses_of(out.sheet, found);
  for (std::size_t r = 0; r < recipe.rows.size() && recipe.plot.kind == PlotKind::heat_map; ++r) {
    const auto key = recipe.cell(r, 0);
    if (key) {
      out.maps.push_back(map_of(out.sheet, found, *key));
    } else {
      out.maps.emplace_back();
    }
  }
  return out;
}

std::vector<Pair> pairs_of(const std::vector<Compared>& orders) {
  std::vector<std::string> who;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Pair> out;
  for (const auto& order : orders) {
    auto by = std::find(who.begin(), who.end(), order.by);
    if (by == who.end()) by = who.insert(who.end(), order.by);
    auto& pair = out[{static_cast<std::size_t>(by - who.begin()), order.more, order.less}];
    pair.by = order.by;
    pair.more = order.more;
    pair.less = order.less;
    ++pair.count[order.verdict];
  }
  std::vector<Pair> sorted;
  for (auto& [place, pair] : out) sorted.push_back(std::move(pair));
  return sorted;
}

std::string in_words(const std::vector<Compared>& orders) {
  struct Words {
    Verdict verdict;
    std::string of_one;
    std::string of_several;
  };
  const auto few = fmt::format("too few samples (fewer than {}, or one for a task)", kLeastSamples);
  const Words all[] = {
      {Verdict::agrees, "agrees", "agree"},
      {Verdict::disagrees, "disagrees", "disagree"},
      {Verdict::cannot_be_told, "cannot be told", "cannot be told"},
      {Verdict::few_samples, "has " + few, "have " + few},
      {Verdict::nothing_evicted, "is of caches from which nothing was evicted",
       "are of caches from which nothing was evicted"},
      {Verdict::not_measured, "was not measured", "were not measured"},
  };
  std::vector<std::string> parts;
  for (const auto& words : all) {
    const auto count = std::ranges::count(orders, words.verdict, &Compared::verdict);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, count == 1 ? words.of_one : words.of_several));
  }
  return fmt::format("Of the paper's {} {}, {}.", orders.size(), orders.size() == 1 ? "order" : "orders",
                     fmt::join(parts, ", "));
}

}  // namespace winnow::papers
