// SPDX-License-Identifier: Apache-2.0
#include "papers/report/text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace winnow::papers {

namespace {

/// A row that says whose figures follow.
std::string title_row(const Recipe& recipe, const std::string& title) {
  std::string out = fmt::format("| *{}* |", title);
  for (std::size_t i = 0; i < recipe.columns.size(); ++i) out += " |";
  return out + "\n";
}

std::string name_of(const Line& row) {
  return row.group.empty() ? row.name : fmt::format("{} ({})", row.name, row.group);
}

std::string head_of(const Recipe& recipe) {
  std::string out = "| |";
  for (const auto& column : recipe.columns) out += fmt::format(" {} |", column.name);
  out += "\n|---|";
  for (std::size_t i = 0; i < recipe.columns.size(); ++i) out += "---:|";
  return out + "\n";
}

std::string papers_rows(const Recipe& recipe) {
  std::string out;
  for (const auto& figures : recipe.figures) {
    out += title_row(recipe, figures.model + ", in the paper");
    for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
      out += fmt::format("| {} |", name_of(recipe.rows[r]));
      for (const auto& value : figures.values[r]) out += fmt::format(" {} |", value ? shown(recipe, *value) : "–");
      out += "\n";
    }
  }
  return out;
}

std::string own_rows(const Result& result) {
  const Recipe& recipe = result.sheet.recipe;
  std::string out = title_row(recipe, result.sheet.model + ", winnow");
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    out += fmt::format("| {} |", name_of(recipe.rows[r]));
    for (const auto& mean : result.figures[r])
      out += mean ? fmt::format(" {} ({}) |", shown(recipe, mean->value), interval(recipe, *mean, " to ")) : " |";
    out += "\n";
  }
  return out;
}

std::string orders_of(const Result& result) {
  if (result.orders.empty()) return "";
  const Recipe& recipe = result.sheet.recipe;
  std::string out =
      in_words(result.orders) +
      "\n\n| order | by | agrees | disagrees | cannot be told | not measured |\n|---|---|---:|---:|---:|---:|\n";
  for (auto& pair : pairs_of(result.orders)) {
    out += fmt::format("| {} > {} | {} |", name_of(recipe.rows[pair.more]), name_of(recipe.rows[pair.less]), pair.by);
    for (const auto verdict : {Verdict::agrees, Verdict::disagrees, Verdict::cannot_be_told, Verdict::not_measured})
      out += fmt::format(" {} |", pair.count[verdict]);
    out += "\n";
  }
  return out + "\n";
}

std::string section_of(const Result& result) {
  const Recipe& recipe = result.sheet.recipe;
  std::string out = fmt::format("## {}: {}\n\n{}. {}\n\nMeasured with {}.\n\n", recipe.id(), recipe.title, recipe.place,
                                used_in_words(recipe), result.sheet.model);
  if (!recipe.rows.empty()) out += head_of(recipe) + papers_rows(recipe) + own_rows(result) + "\n";
  for (const auto& claim : recipe.claims) out += fmt::format("The paper ({}): {}\n\n", claim.place, claim.says);
  out += orders_of(result);
  const auto missing = result.missing();
  if (!missing.empty()) out += "What is missing:\n\n";
  for (const auto& sentence : missing) out += fmt::format("- {}\n", sentence);
  return missing.empty() ? out : out + "\n";
}

}  // namespace

std::string shown(const Recipe& recipe, double figure) { return fmt::format("{:.{}f}", figure, recipe.digits); }

std::string interval(const Recipe& recipe, const eval::Mean& mean, const char* to) {
  const int digits = std::max(0, recipe.digits - 1);
  return fmt::format("{:.{}f}{}{:.{}f}", mean.low, digits, to, mean.high, digits);
}

std::string used_in_words(const Recipe& recipe) {
  std::string out = fmt::format("The paper used {}", fmt::join(recipe.used.models, ", "));
  for (const auto& more : {recipe.used.data, recipe.used.settings, recipe.used.hardware}) {
    if (!more.empty()) out += "; " + more;
  }
  return out + ".";
}

std::string figures_in_paper(const Recipe& recipe) {
  return recipe.figures.empty() ? "" : head_of(recipe) + papers_rows(recipe);
}

std::string to_markdown(const std::vector<Result>& results) {
  std::string out;
  for (const auto& result : results) out += section_of(result);
  return out;
}

}  // namespace winnow::papers
