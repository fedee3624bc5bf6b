// SPDX-License-Identifier: Apache-2.0
#include "papers/report/text.h"

#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <set>

namespace winnow::papers {

namespace {

std::vector<std::string> names_of(const Recipe& recipe) {
  std::vector<std::string> out;
  for (const auto& column : recipe.columns) out.push_back(column.name);
  return out;
}

/// Adds the reports' last column.
std::vector<std::string> with_samples(std::vector<std::string> names) {
  names.emplace_back("samples");
  return names;
}

/// Empty cells from column `done` to the end of a row.
std::string rest_of(const std::vector<std::string>& columns, std::size_t done) {
  std::string out;
  for (auto i = done; i < columns.size(); ++i) out += " |";
  return out + "\n";
}

/// A row that names the source of the following figures.
std::string text_title_row(const std::vector<std::string>& columns, const std::string& title) {
  return fmt::format("| *{}* |", title) + rest_of(columns, 0);
}

std::string row_name(const Line& row) {
  return row.group.empty() ? row.name : fmt::format("{} ({})", row.name, row.group);
}

std::string head_of(const std::vector<std::string>& columns) {
  std::string out = "| |";
  for (const auto& column : columns) out += fmt::format(" {} |", column);
  out += "\n|---|";
  for (std::size_t i = 0; i < columns.size(); ++i) out += "---:|";
  return out + "\n";
}

std::string papers_rows(const Recipe& recipe, const std::vector<std::string>& columns) {
  std::string out;
  for (const auto& figures : recipe.figures) {
    out += text_title_row(columns, figures.model + ", in the paper");
    for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
      out += fmt::format("| {} |", row_name(recipe.rows[r]));
      for (const auto& value : figures.values[r]) out += fmt::format(" {} |", value ? shown(recipe, *value) : "–");
      out += rest_of(columns, recipe.columns.size());
    }
  }
  return out;
}

std::string figure_of(const Recipe& recipe, const std::optional<eval::Mean>& mean, const std::optional<Cell>& cell) {
  if (!mean) return "";
  const auto between = interval(recipe, *mean, " to ");
  return fmt::format(" {}{}{}", shown(recipe, mean->value), between.empty() ? "" : fmt::format(" ({})", between),
                     cell->is_full() ? " = full" : "");
}

std::string own_rows(const Result& result, const std::vector<std::string>& columns) {
  const Recipe& recipe = result.sheet.recipe;
  std::string out = text_title_row(columns, result.sheet.model + ", winnow");
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    out += fmt::format("| {} |", row_name(recipe.rows[r]));
    for (std::size_t c = 0; c < recipe.columns.size(); ++c)
      out += figure_of(recipe, result.figures[r][c], result.cells[r][c]) + " |";
    out += fmt::format(" {} |\n", samples_in_words(result.cells[r]));
  }
  return out;
}

std::string orders_of(const Result& result) {
  if (result.orders.empty()) return "";
  const Recipe& recipe = result.sheet.recipe;
  std::string out = in_words(result.orders) + " " + how_compared() + "\n\n| order | by |";
  for (const auto verdict : kVerdicts) out += fmt::format(" {} |", papers::name_of(verdict));
  out += "\n|---|---|";
  for (std::size_t i = 0; i < std::size(kVerdicts); ++i) out += "---:|";
  out += "\n";
  for (auto& pair : pairs_of(result.orders)) {
    out += fmt::format("| {} > {} | {} |", row_name(recipe.rows[pair.more]), row_name(recipe.rows[pair.less]), pair.by);
    for (const auto verdict : kVerdicts) out += fmt::format(" {} |", pair.count[verdict]);
    out += "\n";
  }
  return out + "\n";
}

std::string section_of(const Result& result) {
  const Recipe& recipe = result.sheet.recipe;
  std::string out = fmt::format("## {}: {}\n\n{}. {}\n\nMeasured with {}.\n\n", recipe.id(), recipe.title, recipe.place,
                                used_in_words(recipe), result.sheet.model);
  const auto columns = with_samples(names_of(recipe));
  if (!recipe.rows.empty()) out += head_of(columns) + papers_rows(recipe, columns) + own_rows(result, columns) + "\n";
  for (const auto& claim : claims_in_words(recipe)) out += claim + "\n\n";
  out += orders_of(result);
  const auto missing = result.missing();
  if (!missing.empty()) out += "What is missing:\n\n";
  for (const auto& sentence : missing) out += fmt::format("- {}\n", sentence);
  return missing.empty() ? out : out + "\n";
}

}  // namespace

std::string how_compared() {
  return fmt::format(
      "A > B means that the paper's figure for A is larger, even if smaller is better. Two rows are compared on the "
      "samples that both have, by the 95 % interval of the mean difference (bootstrap). An order is decided with at "
      "least {} samples, and two of each task.",
      kLeastSamples);
}

std::vector<std::string> claims_in_words(const Recipe& recipe) {
  std::vector<std::string> out;
  for (const auto& claim : recipe.claims)
    out.push_back(fmt::format("The paper's {} ({}): {}", name_of_claim(out.size()), claim.place, claim.says));
  return out;
}

std::string shown(const Recipe& recipe, double figure) { return fmt::format("{:.{}f}", figure, recipe.digits); }

std::string interval(const Recipe& recipe, const eval::Mean& mean, const char* to) {
  return mean.has_interval() ? shown(recipe, mean.low) + to + shown(recipe, mean.high) : "";
}

std::string samples_in_words(const std::vector<std::optional<Cell>>& row) {
  std::set<int> all;
  for (const auto& cell : row) {
    if (cell && cell->samples() > 0) all.insert(cell->samples());
  }
  if (all.empty()) return "";
  return all.size() == 1 ? fmt::format("{}", *all.begin()) : fmt::format("{} to {}", *all.begin(), *all.rbegin());
}

std::string verdict_in_words(const Compared& order) {
  if (order.verdict != Verdict::few_samples) return papers::name_of(order.verdict);
  const int samples = order.ours->samples;
  return samples < kLeastSamples ? fmt::format("{} ({} of {})", papers::name_of(order.verdict), samples, kLeastSamples)
                                 : fmt::format("{} (one for a task)", papers::name_of(order.verdict));
}

std::string used_in_words(const Recipe& recipe) {
  std::string out = fmt::format("The paper used {}", fmt::join(recipe.used.models, ", "));
  for (const auto& more : {recipe.used.data, recipe.used.settings, recipe.used.hardware}) {
    if (!more.empty()) out += "; " + more;
  }
  return out + ".";
}

std::string figures_in_paper(const Recipe& recipe) {
  const auto columns = names_of(recipe);
  return recipe.figures.empty() ? "" : head_of(columns) + papers_rows(recipe, columns);
}

std::string to_markdown(const std::vector<Result>& results) {
  std::string out;
  for (const auto& result : results) out += section_of(result);
  return out;
}

}  // namespace winnow::papers
