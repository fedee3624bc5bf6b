// SPDX-License-Identifier: Apache-2.0
#include "eval/report/figures.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/as_size.h"

namespace winnow::eval {

namespace {

enum class Axis : std::uint8_t { bytes, entries, percent };

constexpr double kMiBOfAxis = 1 << 20;

const char* title_of(Axis axis) {
  return axis == Axis::bytes     ? "MiB held"
         : axis == Axis::entries ? "budget, entries per KV head"
                                 : "budget, % of the prompt";
}

/// Empty for a budget of another unit.
std::optional<double> place_of(const MethodKey& method, const Cell& cell, Axis axis) {
  if (axis == Axis::bytes) return cell.bytes_held / kMiBOfAxis;
  const auto budget = budget_of(method);
  if (!budget || budget->unit() != (axis == Axis::entries ? Budget::Unit::entries : Budget::Unit::percent)) return {};
  return budget->amount();
}

/// False for 0 on a logarithmic axis.
bool fits(const Quantity& quantity, double y) { return quantity.scale == Scale::linear || y > 0; }

std::vector<Curve> curves_of(const Table& table, const Column& column, const Quantity& quantity, Axis axis) {
  std::vector<Curve> out;
  for (const auto& method : table.methods) {
    const Cell* cell = table.find(method, column);
    if (method.budget.empty() || !has(cell, quantity)) continue;
    if (axis == Axis::bytes && !has_all_samples(table, column, cell)) continue;
    const auto x = place_of(method, *cell, axis);
    if (!x || *x <= 0 || !fits(quantity, figure(*cell, quantity))) continue;
    auto curve = std::find_if(out.begin(), out.end(), [&](const Curve& c) { return c.name == name_of(method); });
    if (curve == out.end()) curve = out.insert(out.end(), {name_of(method), {}});
    curve->points.emplace_back(*x, figure(*cell, quantity));
  }
  for (auto& curve : out) std::sort(curve.points.begin(), curve.points.end());
  return out;
}

double mean_height(const Curve& curve) {
  double sum = 0;
  for (const auto& [x, y] : curve.points) sum += y;
  return sum / static_cast<double>(curve.points.size());
}

void best_curves_first(std::vector<Curve>& curves, Better better) {
  std::stable_sort(curves.begin(), curves.end(), [&](const Curve& a, const Curve& b) {
    return better == Better::lower ? mean_height(a) < mean_height(b) : mean_height(a) > mean_height(b);
  });
}

std::vector<double> places_of(const std::vector<Curve>& curves) {
  std::set<double> out;
  for (const auto& curve : curves) {
    for (const auto& [x, y] : curve.points) out.insert(x);
  }
  return {out.begin(), out.end()};
}

Chart chart_of(const std::string& title, const std::string& x_title, const std::string& y_title) {
  Chart out;
  out.title = title;
  out.x_title = x_title;
  out.y_title = y_title;
  return out;
}

void add_chart(const Table& table, const Column& column, const Quantity& quantity, Axis axis, std::vector<Chart>& to) {
  Chart chart = chart_of(name_of(column) + ", " + quantity.title, title_of(axis), quantity.title);
  chart.curves = curves_of(table, column, quantity, axis);
  if (axis != Axis::bytes) chart.x_tics = places_of(chart.curves);
  if (chart.curves.empty() || (axis != Axis::bytes && chart.x_tics.size() < 2)) return;
  best_curves_first(chart.curves, quantity.better);
  chart.y_scale = quantity.scale;
  const Cell* full = table.find({"full", "", "f16"}, column);
  if (has(full, quantity) && fits(quantity, figure(*full, quantity)) && quantity.name != "kl")
    chart.level = figure(*full, quantity);
  to.push_back(std::move(chart));
}

void add_charts(const Table& table, const Column& column, std::vector<Chart>& to) {
  for (const auto& quantity : quantities_of(table, column)) {
    if (quantity.better == Better::unknown) continue;
    for (const Axis axis : {Axis::bytes, Axis::entries, Axis::percent}) add_chart(table, column, quantity, axis, to);
  }
}

bool is_speed(const std::string& task) { return task == "efficiency" || task.starts_with("efficiency/"); }

std::optional<double> number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::stod(text);
}

std::string with_budget(const Record& record) {
  return name_of(MethodKey{record.key.spec, "", record.key.kv_type}) +
         (record.key.budget.empty() ? "" : " @ " + record.key.budget);
}

/// Orders numbers by value, and other words after them.
bool by_number(const std::string& a, const std::string& b) {
  const auto x = number(a);
  const auto y = number(b);
  if (x && y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

/// Scores of one map, by length and depth.
using Places = std::map<std::pair<std::string, std::string>, std::vector<double>>;

HeatMap map_of(const std::string& title, const std::string& task, const Places& places) {
  HeatMap out{title, with_unit("length", task), with_unit("depth", task), {}, {}, {}};
  std::set<std::string, decltype(&by_number)> lengths(&by_number);
  std::set<std::string, decltype(&by_number)> depths(&by_number);
  for (const auto& [place, scores] : places) {
    lengths.insert(place.first);
    depths.insert(place.second);
  }
  out.columns.assign(lengths.begin(), lengths.end());
  out.rows.assign(depths.begin(), depths.end());
  const auto at = [](const std::vector<std::string>& names, const std::string& name) {
    return as_size(std::find(names.begin(), names.end(), name) - names.begin());
  };
  for (const auto& [place, scores] : places)
    out.cells[{at(out.columns, place.first), at(out.rows, place.second)}] = mean_of(scores).value;
  return out;
}

/// Values by method and place.
using Courses = std::map<std::string, std::map<double, std::vector<double>>>;

std::vector<Curve> curves_of(const Courses& courses, const std::function<double(double)>& height) {
  std::vector<Curve> out;
  for (const auto& [name, places] : courses) {
    Curve curve{name, {}};
    for (const auto& [place, values] : places) {
      if (place > 0) curve.points.emplace_back(place, height(mean_of(values).value));
    }
    if (!curve.points.empty()) out.push_back(std::move(curve));
  }
  return out;
}

/// One chart like `form` for each column with values PREFIX@N, against N.
std::vector<Chart> charts_of_spans(const std::string& prefix, const std::vector<Record>& records,
                                   const std::string& protocol, const Chart& form,
                                   const std::function<double(double)>& height) {
  std::map<std::string, Courses> by_column;
  for (const auto& record : records) {
    if (protocol_of(record.key) != protocol || !record.skipped.empty()) continue;
    for (const auto& [name, value] : record.values) {
      if (!name.starts_with(prefix)) continue;
      const auto place = number(name.substr(prefix.size()));
      const bool is_drawn = form.y_scale == Scale::linear || height(value) > 0;  // a logarithmic axis has no 0
      if (place && is_drawn) by_column[name_of(column_of(record))][with_budget(record)][*place].push_back(value);
    }
  }
  std::vector<Chart> out;
  for (const auto& [column, courses] : by_column) {
    Chart chart = form;
    chart.title = column + ", " + form.title;
    chart.curves = curves_of(courses, height);
    best_curves_first(chart.curves, Better::lower);
    if (chart.x_scale == Scale::logarithmic) chart.x_tics = places_of(chart.curves);
    if (!chart.curves.empty()) out.push_back(std::move(chart));
  }
  return out;
}

}  // namespace

std::vector<Chart> curves_of(const Summary& summary) {
  std::vector<Chart> out;
  summary.for_each_headline([&](const Table& table, const Column& column) {
    if (!is_speed(column.task)) add_charts(table, column, out);
  });
  return out;
}

std::vector<HeatMaps> heat_maps_of(const std::vector<Record>& records, const std::string& protocol) {
  std::vector<HeatMaps> out;
  struct Kind {
    std::string task;
    std::string name;  // including the samples' kind
    std::string method;
    bool operator==(const Kind&) const = default;
  };
  std::vector<std::pair<Kind, std::map<std::string, Places>>> all;  // by budget
  for (const auto& record : records) {
    const std::string length = label_of(record, "length");
    const std::string depth = label_of(record, "depth");
    if (protocol_of(record.key) != protocol || !record.skipped.empty() || length.empty() || depth.empty() ||
        is_speed(record.key.task))
      continue;
    const Kind key{record.key.task,
                   record.key.task + (label_of(record, "kind").empty() ? "" : " " + label_of(record, "kind")),
                   name_of(MethodKey{record.key.spec, "", record.key.kv_type})};
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == key; });
    if (found == all.end()) found = all.insert(all.end(), {key, {}});
    found->second[record.key.budget][{length, depth}].push_back(record.score);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
  for (const auto& [key, budgets] : all) {
    HeatMaps maps{key.name + ": " + key.method, {}};
    std::vector<std::string> order;
    for (const auto& [budget, places] : budgets) order.push_back(budget);
    std::sort(order.begin(), order.end(), by_number);
    for (const auto& budget : order)
      maps.maps.push_back(map_of(budget.empty() ? "no budget" : "budget " + budget, key.task, budgets.at(budget)));
    out.push_back(std::move(maps));
  }
  return out;
}

std::vector<Chart> speed_of(const std::vector<Record>& records, const std::string& protocol) {
  std::map<std::string, Courses> by_value;
  for (const auto& record : records) {
    if (protocol_of(record.key) != protocol || !record.skipped.empty() || !is_speed(record.key.task)) continue;
    const double depth =
        number(label_of(record, "depth")).value_or(number(label_of(record, "length")).value_or(record.prompt_tokens));
    for (const auto& [name, value] : record.values) by_value[name][with_budget(record)][depth].push_back(value);
  }
  std::vector<Chart> out;
  for (const auto& [value, courses] : by_value) {
    const Quantity quantity = quantity_of(value);
    Chart chart = chart_of(quantity.title, "tokens of the prompt", quantity.title);
    chart.curves = curves_of(courses, [&](double mean) { return mean / quantity.unit; });
    best_curves_first(chart.curves, quantity.better);
    chart.x_tics = places_of(chart.curves);
    if (!chart.curves.empty()) out.push_back(std::move(chart));
  }
  return out;
}

std::vector<Chart> perplexity_of(const std::vector<Record>& records, const std::string& protocol) {
  Chart form = chart_of("perplexity", "tokens after the prompt", "perplexity");
  form.x_scale = Scale::linear;
  return charts_of_spans("nll@", records, protocol, form, [](double nll) { return std::exp(nll); });
}

std::vector<Chart> divergence_of(const std::vector<Record>& records, const std::string& protocol) {
  const Quantity kl = quantity_of("kl");
  Chart form = chart_of(kl.title, "tokens of the answer", kl.title);
  form.y_scale = kl.scale;
  return charts_of_spans("kl@", records, protocol, form, [](double mean) { return mean; });
}

std::vector<Chart> kept_places_of(const std::vector<Record>& records, const std::string& protocol) {
  std::map<std::string, Courses> by_column;
  for (const auto& record : records) {
    const auto parts = record.series.find("parts");
    if (protocol_of(record.key) != protocol || !record.skipped.empty() || parts == record.series.end()) continue;
    const auto& shares = parts->second;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double middle = 100 * (static_cast<double>(i) + 0.5) / static_cast<double>(shares.size());
      by_column[name_of(column_of(record))][with_budget(record)][middle].push_back(shares[i]);
    }
  }
  std::vector<Chart> out;
  for (const auto& [column, courses] : by_column) {
    Chart chart = chart_of(column + ", kept entries", "position in the prompt, %", "share of kept entries, %");
    chart.x_scale = Scale::linear;
    chart.curves = curves_of(courses, [](double share) { return 100 * share; });
    if (!chart.curves.empty()) out.push_back(std::move(chart));
  }
  return out;
}

}  // namespace winnow::eval
