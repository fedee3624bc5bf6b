// SPDX-License-Identifier: Apache-2.0
#include "eval/report/grid.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>

#include "eval/report/quantity.h"

namespace winnow::eval {

namespace {

using Figures = std::vector<std::optional<double>>;

struct GridLine {
  MethodKey method;  ///< of its first budget
  Figures figures;
};

bool is_there(const Table& table, const MethodKey& method, const Column& column) {
  const Cell* cell = table.find(method, column);
  return cell != nullptr && cell->samples > 0;
}

/// Budgets of a column, ascending.
std::vector<std::string> budgets_in(const Table& table, const Column& column) {
  std::vector<std::string> out;
  for (const auto& method : table.methods) {
    if (method.budget.empty() || !is_there(table, method, column)) continue;
    if (std::find(out.begin(), out.end(), method.budget) == out.end()) out.push_back(method.budget);
  }
  return out;
}

GridLine grid_line(const Table& table, const Column& column, const Quantity& quantity, const MethodKey& method,
                   const std::vector<std::string>& budgets) {
  GridLine out{method, {}};
  for (const auto& budget : budgets) {
    const Cell* cell = table.find({method.spec, method.budget.empty() ? "" : budget, method.kv_type}, column);
    out.figures.push_back(has(cell, quantity) ? std::optional(figure(*cell, quantity)) : std::nullopt);
  }
  return out;
}

std::vector<GridLine> grid_lines(const Table& table, const Column& column, const Quantity& quantity,
                                 const std::vector<std::string>& budgets) {
  std::vector<GridLine> out;
  for (const auto& method : table.methods) {
    const auto is_same = [&](const GridLine& line) {
      return line.method.spec == method.spec && line.method.kv_type == method.kv_type;
    };
    if (!is_there(table, method, column) || std::any_of(out.begin(), out.end(), is_same)) continue;
    out.push_back(grid_line(table, column, quantity, method, budgets));
  }
  return out;
}

std::optional<double> mean_at(const std::vector<GridLine>& lines, std::size_t at) {
  double sum = 0;
  int n = 0;
  for (const auto& line : lines) {
    if (line.figures[at]) sum += *line.figures[at], ++n;
  }
  return n == 0 ? std::nullopt : std::optional(sum / n);
}

/// Mean lead of a line over the others at its own budgets, so that a method measured only with large budgets has no
/// advantage.
double height(const GridLine& line, const Figures& means) {
  double sum = 0;
  int n = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (line.figures[i]) sum += *line.figures[i] - *means[i], ++n;
  }
  return n == 0 ? 0 : sum / n;
}

void best_lines_first(std::vector<GridLine>& lines, Better better) {
  const auto first = std::stable_partition(lines.begin(), lines.end(),
                                           [](const GridLine& line) { return line.method.budget.empty(); });
  if (better == Better::unknown) return;
  const std::vector<GridLine> with_budget(first, lines.end());
  Figures means;
  for (std::size_t i = 0; i < (lines.empty() ? 0 : lines.front().figures.size()); ++i)
    means.push_back(mean_at(with_budget, i));
  const double sign = better == Better::lower ? -1 : 1;
  std::stable_sort(first, lines.end(), [&](const GridLine& a, const GridLine& b) {
    return sign * height(a, means) > sign * height(b, means);
  });
}

Grid grid_of(const Table& table, const Column& column, const Quantity& quantity,
             const std::vector<std::string>& budgets) {
  Grid out{fmt::format("{}: {}", name_of(column), quantity.title), budgets, {}};
  auto lines = grid_lines(table, column, quantity, budgets);
  best_lines_first(lines, quantity.better);
  for (const auto& line : lines) out.rows.push_back({name_of(line.method), {}});
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const auto best = best_of(table, column, quantity, budgets[i]);
    for (std::size_t row = 0; row < lines.size(); ++row) {
      const auto& value = lines[row].figures[i];
      const bool is_best = value && !lines[row].method.budget.empty() && value == best;
      out.rows[row].figures.push_back({value ? fmt::format("{:.{}f}", *value, quantity.digits) : "", is_best});
    }
  }
  return out;
}

void add_column_grids(const Table& table, const Column& column, std::vector<Grid>& to) {
  const auto budgets = budgets_in(table, column);
  if (budgets.size() < 2) return;
  for (const auto& quantity : quantities_of(table, column)) to.push_back(grid_of(table, column, quantity, budgets));
}

}  // namespace

std::vector<Grid> grids_of(const Summary& summary) {
  std::vector<Grid> out;
  summary.for_each_headline([&](const Table& table, const Column& column) { add_column_grids(table, column, out); });
  return out;
}

}  // namespace winnow::eval
