// SPDX-License-Identifier: Apache-2.0
#include "eval/report/html.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

#include "eval/report/quantity.h"

namespace winnow::eval {

namespace {

struct Shown {
  Column column;
  Quantity quantity;
};

std::vector<Shown> shown_of(const Table& table) {
  std::vector<Shown> out;
  for (const auto& column : table.columns) {
    for (auto& quantity : quantities_of(table, column)) out.push_back({column, std::move(quantity)});
  }
  return out;
}

/// Contents of a cell.
std::string figure_html(const Table& table, const MethodKey& method, const Shown& shown,
                        const std::optional<double>& best) {
  const Cell* cell = table.find(method, shown.column);
  if (cell == nullptr) return "";
  if (!has(cell, shown.quantity)) return cell->skipped > 0 ? "<small>skipped</small>" : "";
  const double value = figure(*cell, shown.quantity);
  std::string text = fmt::format("{:.{}f}", value, shown.quantity.digits);
  if (value == best) text = "<b>" + text + "</b>";
  if (shown.quantity.name.empty() && cell->score.has_interval()) {
    const auto score = cell->score.times(1 / shown.quantity.unit);
    text += fmt::format(" <small>{0:.{2}f}–{1:.{2}f}</small>", score.low, score.high, shown.quantity.digits);
  }
  return text;
}

std::string head_of(const std::vector<Shown>& all) {
  std::string out = "<thead><tr><th>method</th><th>MiB held</th>";
  for (const auto& shown : all)
    out += fmt::format("<th>{} <small>{}</small></th>", escaped(name_of(shown.column)), escaped(shown.quantity.title));
  return out + "</tr></thead>\n";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

std::string cell_html(const std::string& column, const std::string& inside) {
  return fmt::format("<td data-column=\"{}\">{}</td>", escaped(column), inside);
}

std::string to_html(const Table& table, const std::string& title, const std::string& says) {
  if (table.columns.empty()) return "";
  const auto all = shown_of(table);
  std::string out = fmt::format("<h3>{}</h3>\n<p>{}</p>\n<div class=\"wide\"><table>\n{}", escaped(title),
                                escaped(says), head_of(all));
  const std::string* budget = nullptr;
  std::vector<std::optional<double>> best;
  for (const auto& method : table.methods) {
    if (budget == nullptr || *budget != method.budget) {
      budget = &method.budget;
      best.clear();
      for (const auto& shown : all) best.push_back(best_of(table, shown.column, shown.quantity, *budget));
      if (!budget->empty())
        out += fmt::format("<tr class=\"budget\"><th>budget {}</th><td colspan=\"{}\"></td></tr>\n", escaped(*budget),
                           all.size() + 1);
    }
    out += fmt::format("<tr><th>{}</th>{}", escaped(name_of(method)), cell_html("MiB held", mib_held(table, method)));
    for (std::size_t i = 0; i < all.size(); ++i)
      out += cell_html(fmt::format("{}, {}", name_of(all[i].column), all[i].quantity.title),
                       figure_html(table, method, all[i], best[i]));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string to_html(const Grid& grid) {
  std::string out =
      fmt::format("<h4>{}</h4>\n<div class=\"wide\"><table>\n<thead><tr><th>method</th>", escaped(grid.title));
  for (const auto& budget : grid.budgets) out += "<th>" + escaped(budget) + "</th>";
  out += "</tr></thead>\n";
  for (const auto& row : grid.rows) {
    out += "<tr><th>" + escaped(row.method) + "</th>";
    for (std::size_t i = 0; i < row.figures.size(); ++i) {
      const auto& [text, best] = row.figures[i];
      out += cell_html("budget " + grid.budgets[i], best ? "<b>" + text + "</b>" : text);
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace winnow::eval
