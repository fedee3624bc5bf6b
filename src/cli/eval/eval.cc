// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <span>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/cache_lists.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/eval/measuring.h"
#include "cli/eval/prompt_limits.h"
#include "cli/eval/records.h"
#include "cli/lists.h"
#include "cli/output.h"
#include "eval/tasks.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Options as CLI11 sets them, before they are checked.
struct RawEval {
  CommonArguments common;
  CommonOptions options;
  CacheLists caches;
  std::vector<std::string> tasks;
  std::vector<std::string> protocols = {"question-aware"};
  std::string split = "test";
  bool chat = false;
  bool alone = false;
  bool prints_samples = false;
  std::string shard = "0/1";
  std::string output;
  PromptLengths lengths;
  eval::TaskOptions task;
};

void add_eval_options(CLI::App& command, RawEval& r) {
  command.add_option("TASK", r.tasks, "tasks (see winnow eval tasks), or files with samples of your own");
  add_cache_lists(command, r.caches);
  as_split_list(
      command.add_option("--protocol", r.protocols,
                         "compress after the question is seen (question-aware), before (question-agnostic), or both"),
      kWords)
      ->check(CLI::IsMember({"question-aware", "question-agnostic"}));
  command.add_flag("--raw", r.common.raw, "use no chat template, for models that have none");
  command.add_flag("--chat", r.chat, "use the chat template for RULER's prompts, too, which have none by default")
      ->excludes("--raw");
  command.add_option("--limit", r.task.limit, "samples of each task (default: all)")->check(counts_from(1));
  command.add_option("--data", r.task.data, "folder with the tasks' files")->envname("WINNOW_DATA");
  as_split_list(
      command.add_option(
          "--length", r.task.lengths,
          "lengths of generated prompts in tokens, or in lines or keys if a task says so (default: see docs/tasks.md)"),
      kNumbers)
      ->check(counts_from(1));
  command
      .add_option(
          "--shots", r.task.shots,
          "examples before each question of short/*: the first of the file, which are not asked then (default: none)")
      ->check(counts_from(0));
  command
      .add_option("--answer", r.task.answer,
                  "exact length of answers in tokens: of the full cache's that fidelity and documents-fidelity force, "
                  "or of those that throughput generates (default: 64; fidelity-long 1,024; throughput 128)")
      ->check(counts_from(2));
  as_split_list(
      command.add_option("--requests", r.task.requests, "requests at the same time (throughput; default: 16)"),
      kNumbers)
      ->check(counts_from(1));
  add_request_memory(command, r.task);
  add_prompt_lengths(command, r.lengths);
  as_split_list(
      command.add_option(
          "--depth", r.task.depths,
          "percent of the prompt at which answers are hidden (niah, kv-retrieval; default: see docs/tasks.md)"),
      kNumbers)
      ->check(whole_number(0, 100));
  command.add_option("--split", r.split, "half of the needles to use; the two share no text, word or wording")
      ->check(CLI::IsMember({"tuning", "test"}));
  as_split_list(
      command.add_option("--kinds", r.task.kinds,
                         "kinds of needles' answers: word, sentence, digits, identifier (18 characters), code "
                         "or uuid (36) (default: the first five)"),
      kWords);
  command
      .add_option(
          "--chunk", r.task.chunk,
          "put needles' answers once at a multiple of N tokens and once halfway between two (default: anywhere)")
      ->check(counts_from(2));
  as_split_list(
      command.add_option("--seed", r.task.seeds, "seeds of generated samples; each of a list gives samples of its own"),
      kNumbers);
  command.add_flag(
      "--alone", r.alone,
      "let each method read each prompt alone (slower), so that records have a reading time for each method");
  command.add_option("--shard", r.shard, "I/N: measure share I of N, counted from 0; winnow eval merge combines them");
  command
      .add_flag("--print-samples", r.prints_samples,
                "measure nothing, but print the samples as lines of JSON, in the format of FILE.jsonl")
      ->excludes("--shard")
      ->excludes("--max-prompt");
  command.add_option("-o,--output", r.output, "folder of the records; existing records are not measured again");
}

std::vector<eval::Task> tasks_of(RawEval& r, const Model& model) {
  if (r.common.raw || r.chat) r.task.format = r.options.prompt.format;
  r.task.split = r.split == "tuning" ? eval::Split::tuning : eval::Split::test;
  auto tasks = eval::make_tasks(r.tasks, model, r.task);
  if (r.common.raw) without_template(tasks);
  return tasks;
}

eval::Evaluation evaluation_of(const RawEval& r) {
  eval::Evaluation evaluation;
  for (const auto& name : r.protocols)
    evaluation.protocols.push_back(name == "question-aware" ? Protocol::aware : Protocol::agnostic);
  evaluation.methods =
      eval::methods_of(methods_in(r.caches), r.caches.budgets, r.caches.kv_types, evaluation.protocols);
  if (r.output.empty()) throw UsageError("there is no folder for the records: give one with -o");
  return evaluation;
}

/// Loads the model, for which tasks can then be made. Only the first process reports problems with the tasks' files.
std::shared_ptr<const Model> load_model(RawEval& r, const Ranks& ranks, Failures& failures) {
  if (!ranks.is_first()) set_verbosity(Verbosity::quiet);
  report_lines(ranks, r.task, failures);
  return Model::load(path_of(r.options.model), r.options.loading);
}

Failures print_samples(RawEval& r) {
  const Ranks ranks;
  Failures failures;
  const auto model = load_model(r, ranks, failures);
  std::string lines;
  for (const auto& task : tasks_of(r, *model)) {
    for (const auto& sample : task.samples) lines += eval::line_of(sample);
  }
  if (ranks.is_first()) write_stdout(lines);
  return failures;
}

Failures measure_tasks(RawEval& r) {
  const Ranks ranks;
  eval::Evaluation evaluation = evaluation_of(r);
  const auto shard = parse_shard(r.shard, ranks);
  Failures failures;
  const auto model = load_model(r, ranks, failures);
  evaluation.tasks = tasks_of(r, *model);
  evaluation.limits = prompt_limits(r.lengths, r.options, model->info());
  for (auto& task : evaluation.tasks) {
    if (r.alone) task.sharing = eval::Sharing::alone;
  }
  Measuring measuring(ranks, *model, r.output, shard, "winnow eval report");
  Session session(model, r.options.session);
  session.on_stop(interrupted);
  measuring.run(session, std::span(&evaluation, 1));
  failures.samples = measuring.end();
  if (ranks.is_first() && !r.options.quiet) measuring.show_result(tables_of({r.output}));
  return failures;
}

void run_eval(RawEval& r) {
  check_common(r.common, r.options);
  if (r.tasks.empty()) throw UsageError("there is no task: give one of those that winnow eval tasks lists");
  const Failures failures = r.prints_samples ? print_samples(r) : measure_tasks(r);
  failures.check();
}

void print_tasks() {
  std::string out;
  for (const auto& task : eval::list_tasks())
    out += fmt::format("{:<32} {:<60} {:<26} {}\n", task.name, task.source, task.metric, task.protocol);
  write_stdout(out);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto* const command = app.add_subcommand("eval", "measure methods on tasks; an interrupted run can be continued");
  const auto raw = std::make_shared<RawEval>();
  add_measuring_options(*command, raw->common, raw->options);
  add_eval_options(*command, *raw);
  auto* const tasks = command->add_subcommand("tasks", "list the tasks with source, metric and question");
  tasks->callback([] { print_tasks(); });
  add_eval_reports(*command);
  add_eval_plot(*command);
  command->footer(
      "Examples:\n  winnow eval longbench/hotpotqa -m model.gguf --data DATA --kv full,snapkv,ems --budget 128,512 -o "
      "results\n  winnow eval documents/hotpotqa -m model.gguf --data DATA --kv full,samkv,reuse,epic -o asked");
  command->callback([raw, command] {
    if (command->get_subcommands().empty()) run_eval(*raw);
  });
}

}  // namespace winnow::cli
