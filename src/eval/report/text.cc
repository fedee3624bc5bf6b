// SPDX-License-Identifier: Apache-2.0
#include "eval/report/text.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

#include "base/counted.h"
#include "eval/report/grid.h"
#include "eval/report/quantity.h"
#include "winnow/recommended.h"

namespace winnow::eval {

namespace {

std::string in_words(const Cell& cell, const Quantity& score, const std::optional<double>& best) {
  if (cell.samples == 0) return cell.skipped > 0 ? "skipped" : "";
  std::string out = fmt::format("{:.1f}", 100 * cell.score.value);
  if (figure(cell, score) == best) out = "**" + out + "**";
  if (cell.score.has_interval()) out += fmt::format(" ({:.1f} to {:.1f})", 100 * cell.score.low, 100 * cell.score.high);
  for (const auto& [name, value] : cell.values) {
    const auto quantity = quantity_of(name);
    out += fmt::format("; {}: {:.4g}", quantity.title, value / quantity.unit);
  }
  return out;
}

std::string markdown_head(const std::vector<std::string>& columns) {
  std::string out = "| method |";
  for (const auto& column : columns) out += fmt::format(" {} |", column);
  out += "\n|---|";
  for (std::size_t i = 0; i < columns.size(); ++i) out += "---:|";
  return out;
}

std::string markdown_of(const Table& table) {
  std::vector<std::string> names;
  std::vector<Quantity> scores;
  for (const auto& column : table.columns) {
    names.push_back(name_of(column));
    scores.push_back(quantities_of(table, column).front());
  }
  names.emplace_back("MiB held");
  std::string out = markdown_head(names);
  for (const auto& method : table.methods) {
    out += fmt::format("\n| `{}`{}{} |", method_label(method.spec), method.budget.empty() ? "" : " @ " + method.budget,
                       method.kv_type == "f16" ? "" : ", " + method.kv_type);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Cell* cell = table.find(method, table.columns[i]);
      out += fmt::format(" {} |",
                         cell == nullptr
                             ? ""
                             : in_words(*cell, scores[i], best_of(table, table.columns[i], scores[i], method.budget)));
    }
    out += fmt::format(" {} |", mib_held(table, method));
  }
  return out + "\n";
}

std::string markdown_of(const Grid& grid) {
  std::string out = fmt::format("{}\n\n{}", grid.title, markdown_head(grid.budgets));
  for (const auto& row : grid.rows) {
    out += fmt::format("\n| `{}` |", row.method);
    for (const auto& figure : row.figures)
      out += figure.best ? fmt::format(" **{}** |", figure.text) : fmt::format(" {} |", figure.text);
  }
  return out + "\n";
}

std::string csv_line(const Summary& summary, const MethodKey& method, const Column& column, const Cell& c) {
  std::string values;
  for (const auto& [name, value] : c.values)
    values += fmt::format("{}{}={:.6g}", values.empty() ? "" : " ", name, value);
  return fmt::format("{},{},\"{}\",\"{}\",{},{},{},{},{:.6f},{:.6f},{:.6f},{:.1f},{:.0f},{}\n", summary.protocol,
                     column.task, column.subset, method.spec, method.budget, method.kv_type, c.samples, c.skipped,
                     c.score.value, c.score.low, c.score.high, c.entries, c.bytes_held, values);
}

}  // namespace

std::string listed(const std::set<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string beyond_note(const Summary& summary) {
  if (summary.beyond_context == 0) return "";
  return fmt::format("{} of prompts that are longer than the model's context, answers included.",
                     counted(summary.beyond_context, "record is", "records are"));
}

std::vector<std::string> skipped_notes(const Summary& summary) {
  std::vector<std::string> out;
  for (const auto& [why, records, same] : summary.skipped)
    out.push_back(fmt::format("{} skipped{}: {}", counted(records, "record was", "records were"),
                              same ? "" : ", for example", why));
  return out;
}

std::string notes_on_methods(const std::vector<Summary>& summaries) {
  std::vector<std::string> specs;
  for (const auto& summary : summaries) {
    for (const auto& method : summary.tasks.methods) specs.push_back(method.spec);
  }
  return label_notes(specs);
}

std::string to_markdown(const std::vector<Summary>& summaries) {
  std::string out;
  for (const auto& summary : summaries) {
    out += fmt::format(
        "{}{}: means of 100 × score (95 % interval of bootstrap means), the best of each budget in bold\n\n",
        out.empty() ? "" : "\n", summary.protocol);
    out += markdown_of(summary.tasks);
    if (!summary.categories.columns.empty())
      out += "\nby category: means of the tasks' means\n\n" + markdown_of(summary.categories);
    if (!summary.lengths.columns.empty())
      out += "\nby the prompt's length in tokens\n\n" + markdown_of(summary.lengths);
    for (const auto& note : skipped_notes(summary)) out += "\n" + note + "\n";
    if (const auto note = beyond_note(summary); !note.empty()) out += "\n" + note + "\n";
    for (const auto& grid : grids_of(summary)) out += fmt::format("\n{}", markdown_of(grid));
  }
  if (const auto notes = notes_on_methods(summaries); !notes.empty()) out += "\n" + notes + "\n";
  return out;
}

std::string to_csv(const std::vector<Summary>& summaries) {
  std::string out = "protocol,task,part,spec,budget,kv_type,samples,skipped,score,low,high,entries,bytes_held,values\n";
  for (const auto& summary : summaries) {
    for (const auto& column : summary.tasks.columns) {
      for (const auto& method : summary.tasks.methods) {
        if (const Cell* cell = summary.tasks.find(method, column)) out += csv_line(summary, method, column, *cell);
      }
    }
  }
  return out;
}

}  // namespace winnow::eval
