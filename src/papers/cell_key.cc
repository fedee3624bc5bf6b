// SPDX-License-Identifier: Apache-2.0
#include "papers/cell_key.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::papers {

namespace {

/// The value of row or column. If both have one, they must be equal.
std::string either(const std::string& row, const std::string& column, const char* what) {
  if (!row.empty() && !column.empty() && row != column)
    throw InputError(
        fmt::format("the row selects the {} {}, but the column selects {}", what, brief(row), brief(column)));
  return row.empty() ? column : row;
}

/// The tasks that both select; if only one selects tasks, these; if none does, all of the measure.
std::vector<std::string> tasks_of(const Select& row, const Select& column, const Measure& measure) {
  std::set<std::string> all;
  for (const auto* task : measure.tasks) all.insert(task->name);
  std::vector<std::string> out;
  const auto& asked = row.tasks.empty() ? column.tasks : row.tasks;
  if (asked.empty()) return {all.begin(), all.end()};
  for (const auto& task : asked) {
    if (!all.contains(task))
      throw InputError(fmt::format("{} is not a task of the measure {}", brief(task), brief(measure.name)));
    const bool in_both = row.tasks.empty() || column.tasks.empty() ||
                         std::find(column.tasks.begin(), column.tasks.end(), task) != column.tasks.end();
    if (in_both) out.push_back(task);
  }
  if (out.empty()) throw InputError("the row and the column have no task in common");
  return out;
}

const Measure& key_measure(const Recipe& recipe, const std::string& name) {
  const auto found = std::find_if(recipe.measures.begin(), recipe.measures.end(),
                                  [&](const Measure& measure) { return measure.name == name || name.empty(); });
  if (found == recipe.measures.end()) throw InputError(fmt::format("there is no measure {}", brief(name)));
  return *found;
}

/// The value that row and column select, which must be one of `all`, the values of the measure's methods. A method
/// without a value has an empty one. If all are empty (full has no budget), the selection has no effect.
std::string selected(const std::string& row, const std::string& column, const char* what, const Measure& measure,
                     const std::vector<std::string>& all) {
  auto out = either(row, column, what);
  std::vector<std::string> has;
  for (const auto& one : all) {
    if (!one.empty() && std::ranges::find(has, one) == has.end()) has.push_back(one);
  }
  if (!out.empty() && !has.empty() && std::ranges::find(has, out) == has.end())
    throw InputError(fmt::format("the {} selects the {} {}, but the measure {} has {}", row.empty() ? "column" : "row",
                                 what, brief(out), brief(measure.name), fmt::join(has, ", ")));
  return out;
}

/// The only method that fits.
eval::Method method_of(const Select& row, const Select& column, const Measure& measure) {
  const auto all = [&](const auto& text_of) {
    std::vector<std::string> out;
    for (const auto& method : measure.methods) out.push_back(text_of(method));
    return out;
  };
  const auto spec = selected(row.method, column.method, "method", measure, all([](const auto& m) { return m.spec(); }));
  const auto budget = selected(row.budget, column.budget, "budget", measure,
                               all([](const auto& m) { return m.budget() ? m.budget()->print() : ""; }));
  const auto type =
      selected(row.kv_type, column.kv_type, "type", measure, all([](const auto& m) { return m.kv_type().print(); }));
  std::vector<const eval::Method*> fit;
  for (const auto& method : measure.methods) {
    const bool is_of_budget = !method.budget() || budget.empty() || method.budget()->print() == budget;
    const bool is_meant =
        (spec.empty() || method.spec() == spec) && (type.empty() || method.kv_type().print() == type) && is_of_budget;
    if (is_meant) fit.push_back(&method);
  }
  if (fit.size() != 1)
    throw InputError(fmt::format("{} methods of the measure {} fit: select one method, budget and type", fit.size(),
                                 brief(measure.name)));
  return *fit.front();
}

Protocol key_protocol(const Select& row, const Select& column, const Measure& measure) {
  std::vector<std::string> all;
  for (const auto protocol : measure.protocols) all.emplace_back(eval::name_of(protocol));
  const auto name = selected(row.protocol, column.protocol, "protocol", measure, all);
  if (name.empty() && measure.protocols.size() > 1)
    throw InputError(
        fmt::format("the measure {} has {} protocols: select one", measure.name, measure.protocols.size()));
  const auto is_meant = [&](Protocol protocol) { return name.empty() || eval::name_of(protocol) == name; };
  return *std::ranges::find_if(measure.protocols, is_meant);
}

}  // namespace

CellKey key_of(const Recipe& recipe, const Select& row, const Select& column) {
  const Measure& measure = key_measure(recipe, either(row.measure, column.measure, "measure"));
  CellKey out{&measure,
              tasks_of(row, column, measure),
              method_of(row, column, measure),
              key_protocol(row, column, measure),
              row.labels,
              either(row.value, column.value, "value"),
              either(row.series, column.series, "series")};
  out.labels.insert(column.labels.begin(), column.labels.end());
  return out;
}

}  // namespace winnow::papers
