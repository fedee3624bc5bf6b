// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/eval/measuring.h"
#include "cli/eval/prompt_limits.h"
#include "cli/lists.h"
#include "cli/output.h"
#include "cli/papers/papers.h"
#include "papers/join.h"
#include "papers/library.h"
#include "papers/plan.h"
#include "papers/report/text.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Options as CLI11 sets them, before they are checked.
struct RawPapersRun {
  CommonArguments common;
  CommonOptions options;
  PromptLengths lengths;
  eval::TaskOptions task;
  std::vector<std::string> recipes;
  std::string shard = "0/1";
  std::string output;
};

constexpr FileKind kSheetFile{R"({"recipe":)", "a file of winnow papers run"};

void write_sheet(const papers::Sheet& sheet, const std::string& folder) {
  const auto path = papers::sheet_path(folder, sheet);
  if (!path) return;
  if (std::filesystem::path(*path).stem().has_extension())
    log().info("{}: {} also has other samples of it; the report shows each run separately", sheet.recipe.id(), folder);
  std::filesystem::create_directories(std::filesystem::path(*path).parent_path());
  write_file(*path, papers::to_json(sheet).dump() + "\n", kSheetFile);
}

/// Loads recipes. Throws UsageError for one that cannot be measured at all.
std::vector<papers::Recipe> recipes_of(const std::vector<std::string>& names) {
  std::vector<papers::Recipe> out;
  for (const auto& name : names) {
    out.push_back(papers::load_recipe(name));
    if (out.back().measures.empty())
      throw UsageError(fmt::format("{} cannot be measured: {}", name, out.back().missing.front()));
  }
  return out;
}

std::vector<papers::Plan> plans_of(const RawPapersRun& r, const std::vector<papers::Recipe>& recipes,
                                   const Model& model) {
  const auto limits = prompt_limits(r.lengths, r.options, model.info());
  std::vector<papers::Plan> out;
  for (const auto& recipe : recipes) {
    auto plan = papers::plan(recipe, model, r.task, limits);
    if (plan.evaluations.empty())
      throw InputError(fmt::format("{} cannot be measured at all: {}", recipe.id(), fmt::join(plan.sheet.notes, "; ")));
    for (const auto& note : plan.sheet.notes) log().warn("{}: {}", recipe.id(), note);
    for (const auto& option : plan.unused)
      log().warn("{}: {} has no effect, because none of its tasks uses it", recipe.id(), option);
    for (auto& evaluation : plan.evaluations) {
      if (r.common.raw) without_template(evaluation.tasks);
    }
    out.push_back(std::move(plan));
  }
  return out;
}

Failures measure_recipe(RawPapersRun& r) {
  const Ranks ranks;
  const auto shard = parse_shard(r.shard, ranks);
  const auto recipes = recipes_of(r.recipes);  // reports a wrong name before the model is loaded
  if (!ranks.is_first()) set_verbosity(Verbosity::quiet);
  Failures failures;
  report_lines(ranks, r.task, failures);
  const auto model = Model::load(path_of(r.options.model), r.options.loading);
  if (r.common.raw) r.task.format = r.options.prompt.format;
  auto plans = plans_of(r, recipes, *model);
  Measuring measuring(ranks, *model, r.output, shard, "winnow papers report");
  Session session(model, r.options.session);
  session.on_stop(interrupted);
  for (const auto& plan : plans) {
    if (ranks.is_first()) write_sheet(plan.sheet, r.output);
  }
  auto evaluations = papers::joined(std::move(plans));
  measuring.run(session, evaluations);
  failures.samples = measuring.end();
  if (ranks.is_first() && !r.options.quiet) measuring.show_result(papers::to_markdown(results_in({r.output})));
  return failures;
}

void add_papers_options(CLI::App& command, RawPapersRun& r) {
  command.add_option("NAME", r.recipes, "names such as ems/table-9, as winnow papers lists them, or files of recipes")
      ->required();
  command.add_flag("--raw", r.common.raw, "use no chat template, for models that have none");
  command.add_option("--limit", r.task.limit, "samples of each task (default: all)")->check(counts_from(1));
  command.add_option("--data", r.task.data, "folder with the tasks' files")->envname("WINNOW_DATA");
  as_split_list(command.add_option("--length", r.task.lengths, "lengths of generated prompts (default: the recipe's)"),
                kNumbers)
      ->check(counts_from(1));
  command
      .add_option("--answer", r.task.answer, "tokens of answers, if the recipe sets a number (default: the recipe's)")
      ->check(counts_from(2));
  add_request_memory(command, r.task);
  add_prompt_lengths(command, r.lengths);
  as_split_list(
      command.add_option("--seed", r.task.seeds, "seeds of generated samples; each of a list gives samples of its own"),
      kNumbers);
  command.add_option("--shard", r.shard,
                     "I/N: measure share I of N, counted from 0; papers report combines their folders");
  command
      .add_option("-o,--output", r.output,
                  "folder of the records, for any number of recipes; existing records are not measured again")
      ->required();
}

}  // namespace

void add_papers_run(CLI::App& papers) {
  auto* const command =
      papers.add_subcommand("run", "measure the counterpart of a table or figure; an interrupted run can be continued");
  const auto raw = std::make_shared<RawPapersRun>();
  add_measuring_options(*command, raw->common, raw->options);
  add_papers_options(*command, *raw);
  command->footer("Example:\n  winnow papers run ems/table-9 -m model.gguf --data DATA -o results --limit 20");
  command->callback([raw] {
    check_common(raw->common, raw->options);
    measure_recipe(*raw).check();
  });
}

}  // namespace winnow::cli
