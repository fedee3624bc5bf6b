// SPDX-License-Identifier: Apache-2.0
#include "papers/report/page.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "eval/report/drawn_page.h"
#include "eval/report/gnuplot.h"
#include "eval/report/html.h"
#include "papers/report/figures.h"
#include "papers/report/text.h"
#include "winnow/version.h"

namespace winnow::papers {

namespace {

using eval::cell_html;
using eval::escaped;

std::string row_head(const Line& row) {
  return escaped(row.name) + (row.group.empty() ? "" : fmt::format(" <small>{}</small>", escaped(row.group)));
}

std::string begin_table(const std::string& head) {
  return "<div class=\"wide\"><table>\n<thead><tr>" + head + "</tr></thead>\n";
}

std::string title_row(const Recipe& recipe, const std::string& title) {
  return fmt::format("<tr class=\"budget\"><th>{}</th><td colspan=\"{}\"></td></tr>\n", escaped(title),
                     recipe.columns.size() + 1);
}

/// Contents of a cell.
std::string figure_html(const Recipe& recipe, const std::optional<eval::Mean>& mean, const std::optional<Cell>& cell) {
  if (!mean) return cell && cell->skipped > 0 ? "<small>skipped</small>" : "";
  std::vector<std::string> notes;
  if (mean->has_interval()) notes.push_back(interval(recipe, *mean, "–"));
  if (cell->is_full()) notes.emplace_back("= full");
  if (!cell->is_whole()) notes.push_back(fmt::format("{} of {}", cell->measured, cell->planned));
  return fmt::format("{} <small>{}</small>", shown(recipe, mean->value), fmt::join(notes, ", "));
}

std::string page_figures(const Result& result) {
  const Recipe& recipe = result.sheet.recipe;
  std::string head = "<th></th>";
  for (const auto& column : recipe.columns) head += "<th>" + escaped(column.name) + "</th>";
  std::string out = begin_table(head + "<th>samples</th>");
  for (const auto& figures : recipe.figures) {
    out += title_row(recipe, figures.model + ", in the paper");
    for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
      out += "<tr><th>" + row_head(recipe.rows[r]) + "</th>";
      for (std::size_t c = 0; c < recipe.columns.size(); ++c) {
        const auto& value = figures.values[r][c];
        out += cell_html(recipe.columns[c].name, value ? shown(recipe, *value) : "–");
      }
      out += "<td></td></tr>\n";
    }
  }
  out += title_row(recipe, result.sheet.model + ", winnow");
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    out += "<tr><th>" + row_head(recipe.rows[r]) + "</th>";
    for (std::size_t c = 0; c < recipe.columns.size(); ++c)
      out += cell_html(recipe.columns[c].name, figure_html(recipe, result.figures[r][c], result.cells[r][c]));
    out += cell_html("samples", samples_in_words(result.cells[r])) + "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string page_order(const Recipe& recipe, std::size_t more, std::size_t less) {
  return row_head(recipe.rows[more]) + " &gt; " + row_head(recipe.rows[less]);
}

/// A row that spans the table.
std::string wide_row(const char* kind, const std::string& text, std::size_t columns) {
  return fmt::format("<tr class=\"{}\"><td class=\"text\" colspan=\"{}\">{}</td></tr>\n", kind, columns, escaped(text));
}

/// Rows of orders or pairs, grouped under the name of their model or claim. `row_of` returns "" for what was not
/// measured; each group ends with the number of such rows.
template <class Of, class RowOf>
std::string grouped_rows(const std::vector<Of>& all, std::size_t columns, const RowOf& row_of) {
  std::string out;
  for (auto one = all.begin(); one != all.end();) {
    const auto& by = one->by;
    out += wide_row("budget", by, columns);
    int unmeasured = 0;
    for (; one != all.end() && one->by == by; ++one) {
      const auto row = row_of(*one);
      out += row;
      unmeasured += row.empty() ? 1 : 0;
    }
    if (unmeasured > 0) out += wide_row("rest", fmt::format("{} not measured", unmeasured), columns);
  }
  return out;
}

std::string pair_row(const Recipe& recipe, const Pair& pair) {
  if (pair.count.size() == 1 && pair.count.contains(Verdict::not_measured)) return "";
  std::string out = "<tr><th>" + page_order(recipe, pair.more, pair.less) + "</th>";
  for (const auto verdict : kVerdicts) {
    const auto found = pair.count.find(verdict);
    out += cell_html(papers::name_of(verdict), found == pair.count.end() ? "" : std::to_string(found->second));
  }
  return out + "</tr>\n";
}

std::string pairs_table(const Result& result) {
  std::string head = "<th>order in the paper</th>";
  for (const auto verdict : kVerdicts) head += fmt::format("<th>{}</th>", papers::name_of(verdict));
  const auto row_of = [&](const Pair& pair) { return pair_row(result.sheet.recipe, pair); };
  return begin_table(head) + grouped_rows(pairs_of(result.orders), 1 + std::size(kVerdicts), row_of) +
         "</table></div>\n";
}

std::string order_row(const Recipe& recipe, const Compared& order) {
  if (!order.ours) return "";
  const auto& ours = *order.ours;
  const auto measured =
      fmt::format("{:+.{}f} <small>{}</small>", ours.mean.value, recipe.digits, interval(recipe, ours.mean, " to "));
  return "<tr><th>" + page_order(recipe, order.more, order.less) + "</th>" +
         cell_html("column", escaped(recipe.columns[order.column].name)) +
         cell_html("in the paper", order.paper ? "+" + shown(recipe, *order.paper) : "") +
         cell_html("winnow", measured) + cell_html("samples", std::to_string(ours.samples)) +
         cell_html("verdict", verdict_in_words(order)) + "</tr>\n";
}

std::string every_order(const Result& result) {
  const auto row_of = [&](const Compared& order) { return order_row(result.sheet.recipe, order); };
  return "<details><summary>All orders</summary>\n" +
         begin_table(
             "<th>order in the paper</th><th>column</th><th>in the paper</th><th>winnow</th><th>samples</th>"
             "<th>verdict</th>") +
         grouped_rows(result.orders, 6, row_of) + "</table></div></details>\n";
}

void add_orders(const Result& result, eval::DrawnPage& page) {
  if (result.orders.empty()) return;
  page.add(fmt::format("<h3>Orders</h3>\n<p>{} {}</p>\n", escaped(in_words(result.orders)), escaped(how_compared())));
  const bool is_measured =
      std::ranges::any_of(result.orders, [](const Compared& order) { return order.ours.has_value(); });
  if (!is_measured) return;
  page.add(pairs_table(result));
  page.add(every_order(result));
}

void add_plots(const Result& result, eval::DrawnPage& page) {
  page.add_charts("Plots", result.sheet.recipe.figures.empty() ? "As measured." : "The paper's figures, then winnow's.",
                  charts_of(result));
  const auto maps = maps_of(result);
  if (maps.empty()) return;
  page.add(fmt::format("<h3>Maps</h3>\n<p>Mean score in percent, {}.</p>\n<div class=\"maps\">\n",
                       escaped(result.sheet.model)));
  for (const auto& map : maps) page.add_figure(map);
  page.add("</div>\n");
}

void add_missing(const Result& result, eval::DrawnPage& page) {
  const auto missing = result.missing();
  if (missing.empty()) return;
  page.add("<h3>What is missing</h3>\n<ul>\n");
  for (const auto& sentence : missing) page.add("<li>" + escaped(sentence) + "</li>\n");
  page.add("</ul>\n");
}

/// The id of each result's section: the recipe's id, with a number from its second run on.
std::vector<std::string> sections_of(const std::vector<Result>& results) {
  std::map<std::string, int> count;
  std::vector<std::string> out;
  for (const auto& result : results) {
    const auto id = result.sheet.recipe.id();
    const int number = ++count[id];
    out.push_back(escaped(number == 1 ? id : fmt::format("{}.{}", id, number)));
  }
  return out;
}

void add_result(const Result& result, const std::string& section, bool draws, eval::DrawnPage& page) {
  const Recipe& recipe = result.sheet.recipe;
  page.add(fmt::format("<h2 id=\"{}\">{}: {}</h2>\n<p>{}. {} Measured with {}.</p>\n", section, escaped(recipe.id()),
                       escaped(recipe.title), escaped(recipe.place), escaped(used_in_words(recipe)),
                       escaped(result.sheet.model)));
  for (const auto& claim : claims_in_words(recipe)) page.add(fmt::format("<p>{}</p>\n", escaped(claim)));
  if (!recipe.rows.empty()) page.add(page_figures(result));
  if (draws) add_plots(result, page);
  add_orders(result, page);
  add_missing(result, page);
}

}  // namespace

std::string to_page(const std::vector<Result>& results) {
  const bool draws = eval::has_gnuplot();
  eval::DrawnPage page("winnow papers report");
  page.add(
      fmt::format("<h1>Tables and figures of papers, and winnow's counterparts</h1>\n<p>Written by winnow {}. "
                  "Papers' figures are of other models, programs and samples: compare orders and gaps.</p>\n<nav>",
                  kVersion));
  const auto sections = sections_of(results);
  for (const auto& section : sections) page.add(fmt::format("<a href=\"#{0}\">{0}</a> ", section));
  page.add("</nav>\n");
  if (!draws) page.add(eval::kNoGnuplot);
  for (std::size_t i = 0; i < results.size(); ++i) add_result(results[i], sections[i], draws, page);
  return page.drawn();
}

}  // namespace winnow::papers
