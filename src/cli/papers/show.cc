// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/papers/papers.h"
#include "eval/group.h"
#include "papers/library.h"
#include "papers/plan.h"
#include "papers/report/text.h"
#include "winnow/describe.h"

namespace winnow::cli {

namespace {

struct RawShow {
  std::string recipe;
  ModelSource model;
  std::string data;
};

/// The texts, without duplicates.
std::string listed(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts) {
    if (!text.empty() && std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string in_words(const papers::Measure& measure) {
  std::vector<std::string> tasks;
  std::vector<std::string> methods;
  std::vector<std::string> budgets;
  std::vector<std::string> types;
  std::vector<std::string> protocols;
  for (const auto* task : measure.tasks) tasks.push_back(task->name);
  for (const auto& method : measure.methods) {
    methods.push_back(method.spec());
    budgets.push_back(method.budget() ? method.budget()->print() : "");
    types.push_back(method.kv_type().print());
  }
  for (const auto protocol : measure.protocols) protocols.emplace_back(eval::name_of(protocol));
  std::string out =
      fmt::format("measure {}\n  tasks      {}\n  methods    {}\n", measure.name, listed(tasks), listed(methods));
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out += fmt::format("  {:<10} {}\n", name, text);
  };
  add("budgets", listed(budgets));
  add("types", listed(types));
  add("protocols", listed(protocols));
  add("lengths", fmt::format("{}", fmt::join(measure.lengths, ", ")));
  add("depths", fmt::format("{}", fmt::join(measure.depths, ", ")));
  add("seeds", fmt::format("{}", fmt::join(measure.seeds, ", ")));
  add("max prompt", measure.max_prompt > 0 ? std::to_string(measure.max_prompt) : "");
  add("requests", fmt::format("{}", fmt::join(measure.requests, ", ")));
  add("answer", measure.answer > 0 ? fmt::format("{} tokens", measure.answer) : "");
  add("shots", measure.shots > 0 ? std::to_string(measure.shots) : "");
  return out;
}

/// A selection in words: "method snapkv, budget 128, length = 4000".
std::string in_words(const papers::Select& select) {
  std::vector<std::string> out;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out.push_back(fmt::format("{} {}", name, text));
  };
  add("measure", select.measure);
  add("tasks", listed(select.tasks));
  add("method", select.method);
  add("budget", select.budget);
  add("type", select.kv_type);
  add("protocol", select.protocol);
  add("value", select.value);
  add("series", select.series);
  for (const auto& [label, value] : select.labels) out.push_back(fmt::format("{} = {}", label, value));
  return fmt::format("{}", fmt::join(out, ", "));
}

/// The records that each line selects, or why it has no counterpart.
std::string in_words(const char* title, const std::vector<papers::Line>& lines) {
  std::string out;
  for (const auto& line : lines) {
    const auto name = line.group.empty() ? line.name : fmt::format("{} ({})", line.name, line.group);
    const auto what = line.not_measured.empty() ? in_words(line.select) : line.not_measured;
    if (!what.empty()) out += fmt::format("  {}: {}\n", name, what);
  }
  return out.empty() ? out : fmt::format("\n{}\n{}", title, out);
}

void show_recipe(const RawShow& r) {
  const auto recipe = papers::load_recipe(r.recipe);
  std::string out =
      fmt::format("{}: {}\n{}. {}\n", recipe.id(), recipe.title, recipe.place, papers::used_in_words(recipe));
  for (const auto& claim : papers::claims_in_words(recipe)) out += claim + "\n";
  if (!recipe.figures.empty()) out += "\n" + papers::figures_in_paper(recipe);
  for (const auto& measure : recipe.measures) out += "\n" + in_words(measure);
  out += in_words("rows", recipe.rows) + in_words("columns", recipe.columns);
  auto missing = recipe.missing;
  const int context = !r.model.is_named() ? 0 : describe_model(path_of(r.model)).info.context;
  const auto absent = papers::not_at_hand(recipe, r.data, context);
  missing.insert(missing.end(), absent.begin(), absent.end());
  if (!missing.empty()) out += fmt::format("\nmissing\n  {}\n", fmt::join(missing, "\n  "));
  show(out);
}

}  // namespace

void add_papers_show(CLI::App& papers) {
  auto* const command =
      papers.add_subcommand("show", "describe a table or figure, what the paper used, and which of that is available");
  const auto raw = std::make_shared<RawShow>();
  command
      ->add_option("NAME", raw->recipe, "a name such as ems/table-9, as winnow papers lists them, or a recipe's file")
      ->required();
  add_model_options(*command, raw->model, "GGUF model whose context is compared with the paper's lengths");
  command->add_option("--data", raw->data, "folder with the tasks' files")->envname("WINNOW_DATA");
  command->footer("Example:\n  winnow papers show ems/table-3 -m model.gguf --data DATA");
  command->callback([raw] { show_recipe(*raw); });
}

}  // namespace winnow::cli
