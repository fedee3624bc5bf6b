// SPDX-License-Identifier: Apache-2.0
#include "cli/papers/papers.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "papers/library.h"

namespace winnow::cli {

namespace {

const char* state_of(const papers::Recipe& recipe) {
  if (recipe.measures.empty()) return "not measured yet";
  return recipe.missing.empty() ? "" : "in part";
}

void list_recipes() {
  std::string out;
  for (const auto& name : papers::recipe_names()) {
    const auto recipe = papers::load_recipe(name);
    out += fmt::format("{:<18} {:<17} {}\n", name, state_of(recipe), recipe.title);
  }
  write_stdout(out);
}

}  // namespace

void add_papers(CLI::App& app) {
  auto* const command = app.add_subcommand("papers", "reproduce tables and figures of papers with your model");
  add_papers_show(*command);
  add_papers_run(*command);
  add_papers_report(*command);
  command->footer(
      "Without a subcommand it lists the tables and figures.\n"
      "Example:\n  winnow papers run ems/table-9 -m model.gguf --data DATA -o results --limit 20\n"
      "  winnow papers report results -o results.html");
  command->callback([command] {
    if (command->get_subcommands().empty()) list_recipes();
  });
}

}  // namespace winnow::cli
