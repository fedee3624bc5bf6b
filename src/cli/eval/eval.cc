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
  command.add_option("TASK", r.tasks, "tasks (see winnow eval tasks), or files of your own samples");
  add_cache_lists(command, r.caches);
  as_split_list(command.add_option("--protocol", r.protocols,
                                   "question-aware: compress after the question is seen; question-agnostic: before; "
                                   "or both"),
                kWords)
      ->check(CLI::IsMember({"question-aware", "question-agnostic"}));
  command.add_flag("--raw", r.common.raw, "no chat template, for models that have none");
  command.add_flag("--chat", r.chat, "the chat template around RULER's prompts, too, which have none by default")
      ->excludes("--raw");
  command.add_option("--limit", r.task.limit, "samples of each task (default: all)")->check(counts_from(1));
  command.add_option("--data", r.task.data, "folder with the tasks' files")->envname("WINNOW_DATA");
  as_split_list(command.add_option("--length", r.task.lengths,
                                   "lengths of made-up prompts: tokens, or lines or keys where a task says so "
                                   "(default: as docs/tasks.md has it)"),
                kNumbers)
      ->check(counts_from(1));
  command
      .add_option(
          "--shots", r.task.shots,
          "examples before each question of short/*: the file's first, which are not asked then (default: none)")
      ->check(counts_from(0));
  command
      .add_option(
          "--answer", r.task.answer,
          "tokens of answers, whatever they say: of the full cache's that fidelity and documents-fidelity force, "
          "or of those that throughput generates (default: 64; fidelity-long 1,024; throughput 128)")
      ->check(counts_from(2));
  as_split_list(
      command.add_option("--requests", r.task.requests, "requests that come at once (throughput; default: 16)"),
      kNumbers)
      ->check(counts_from(1));
  add_request_memory(command, r.task);
  add_prompt_lengths(command, r.lengths);
  as_split_list(
      command.add_option(
          "--depth", r.task.depths,
          "percent of the prompt at which answers are hidden (niah, kv-retrieval; default: as docs/tasks.md has it)"),
      kNumbers)
      ->check(whole_number(0, 100));
  command.add_option("--split", r.split, "half of the needles, which have no text, word or wording in common")
      ->check(CLI::IsMember({"tuning", "test"}));
  as_split_list(
      command.add_option("--kinds", r.task.kinds,
                         "kinds of needles' answers: word, sentence, digits, identifier (18 characters), code "
                         "or uuid (36) (default: the first five)"),
      kWords);
  command
      .add_option("--chunk", r.task.chunk,
                  "needles' answers once at a multiple of N tokens, once halfway between two (default: anywhere)")
      ->check(counts_from(2));
  as_split_list(
      command.add_option("--seed", r.task.seeds, "seeds of made-up samples; each of a list makes samples of its own"),
      kNumbers);
  command.add_flag("--alone", r.alone,
                   "each method reads each prompt by itself (slower): records have a reading time of its own");
  command.add_option("--shard", r.shard,
                     "I/N: measure the Ith of N shares, from 0; winnow eval merge puts them together");
  command
      .add_flag("--print-samples", r.prints_samples,
                "measure nothing: print the samples as lines of JSON, as FILE.jsonl may have them")
      ->excludes("--shard")
      ->excludes("--max-prompt");
  command.add_option("-o,--output", r.output, "folder of the records; what is there is not measured again");
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
  if (r.output.empty()) throw UsageError("no folder for the records: give one with -o");
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
  if (r.tasks.empty()) throw UsageError("no task: winnow eval tasks lists them");
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
  auto* const command = app.add_subcommand("eval", "measure methods on tasks, resumably");
  const auto raw = std::make_shared<RawEval>();
  add_measuring_options(*command, raw->common, raw->options);
  add_eval_options(*command, *raw);
  auto* const tasks = command->add_subcommand("tasks", "list the tasks with source, metric and what the question is");
  tasks->callback([] { print_tasks(); });
  add_eval_reports(*command);
  command->footer(
      "Examples:\n  winnow eval longbench/hotpotqa -m model.gguf --data DATA --kv full,snapkv,ems --budget 128,512 -o "
      "results\n  winnow eval documents/hotpotqa -m model.gguf --data DATA --kv full,samkv,reuse,epic -o asked");
  command->callback([raw, command] {
    if (command->get_subcommands().empty()) run_eval(*raw);
  });
}

}  // namespace winnow::cli
