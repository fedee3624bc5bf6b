// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/cache_lists.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/eval/progress.h"
#include "cli/eval/prompt_limits.h"
#include "cli/eval/ranks.h"
#include "cli/output.h"
#include "eval/process_folders.h"
#include "eval/tasks.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// What CLI11 fills in before it can be checked.
struct Raw {
  CommonArguments common;
  CommonOptions options;
  CacheLists caches;
  std::vector<std::string> tasks;
  std::vector<std::string> protocols = {"question-aware"};
  std::string shard = "0/1";
  std::string output;
  PromptLengths lengths;
  eval::TaskOptions task;
};

void add_options(CLI::App& command, Raw& r) {
  command.add_option("TASK", r.tasks, "what is measured (see winnow eval tasks)");
  add_cache_lists(command, r.caches);
  command.add_option("--protocol", r.protocols, "compress after or before the question is seen, or both")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"question-aware", "question-agnostic"}));
  command.add_flag("--raw", r.common.raw, "no chat template, for models that have none");
  command.add_option("--limit", r.task.limit, "samples of each task (default all)")->check(counts_from(1));
  command.add_option("--data", r.task.data, "folder with the tasks' files")->envname("WINNOW_DATA");
  command
      .add_option("--length", r.task.lengths,
                  "of prompts that are made up: tokens, or lines or keys where a task says so")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(counts_from(1));
  command
      .add_option("--shots", r.task.shots,
                  "examples before each question of short/*: the file's first, which are not asked then")
      ->check(counts_from(0));
  command
      .add_option("--answer", r.task.answer,
                  "tokens of the full cache's answer that fidelity forces (default 64; fidelity-long 1,024)")
      ->check(CLI::Range(2, 4096));
  add_prompt_lengths(command, r.lengths);
  command
      .add_option("--depth", r.task.depths, "percent of the prompt at which answers are hidden (niah, kv-retrieval)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 100));
  command.add_option("--seed", r.task.seeds, "of what is made up; each of a list makes samples of its own")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--shard", r.shard,
                     "I/N: measure the Ith of N shares, from 0; winnow eval merge puts them together");
  command.add_option("-o,--output", r.output, "folder of the records; what is there is not measured again");
}

eval::Shard parse_shard(const std::string& text) {
  eval::Shard out;
  char more = 0;
  if (std::sscanf(text.c_str(), "%d/%d%c", &out.index, &out.count, &more) != 2 || out.index < 0 ||
      out.index >= out.count)
    throw UsageError(fmt::format("--shard {}: give I/N with 0 <= I < N", text));
  return out;
}

eval::Evaluation evaluation_of(const Raw& r) {
  eval::Evaluation evaluation;
  evaluation.methods = eval::methods_of(r.caches.kv, r.caches.budgets, r.caches.kv_types);
  evaluation.shard = parse_shard(r.shard);
  for (const auto& name : r.protocols)
    evaluation.protocols.push_back(name == "question-aware" ? Protocol::aware : Protocol::agnostic);
  if (r.tasks.empty()) throw UsageError("no task: winnow eval tasks lists them");
  if (r.output.empty()) throw UsageError("no folder for the records: give one with -o");
  return evaluation;
}

void without_template(eval::Evaluation& evaluation) {
  for (auto& task : evaluation.tasks) {
    for (auto& sample : task.samples) sample.prompt.format = PromptFormat::raw;
  }
}

/// Prints the sums of all processes, on the first.
void print_outcome(const eval::Outcome& outcome, const eval::RecordFile& records) {
  end_eval_progress();
  log().info("{} groups measured, {} known before, {} failed; {:.1f} s, {:.0f} % of it in the model; {} records in all",
             outcome.measured, outcome.known, outcome.failed, outcome.seconds,
             outcome.seconds > 0 ? 100 * outcome.model_seconds / outcome.seconds : 0.0, records.records().size());
}

void say_repairs(const std::string& folder, const eval::Repairs& repairs) {
  if (repairs.cut_lines + repairs.partial_groups > 0)
    log().warn("{}: {} cut line, {} groups without all their records: measured again", folder, repairs.cut_lines,
               repairs.partial_groups);
}

void say_unmarked(const std::string& folder) {
  for (const auto& path : eval::unmarked_process_folders(folder))
    log().warn(
        "{} is no part of this run (it has no file winnow-part) and stays as it is; winnow eval merge takes in "
        "records that are there",
        path);
}

void add_up(const Ranks& ranks, eval::Outcome& outcome) {
  double all[] = {1.0 * outcome.measured, 1.0 * outcome.known, 1.0 * outcome.failed, outcome.model_seconds,
                  outcome.seconds};
  ranks.add_up(all);
  outcome = {static_cast<int>(all[0]), static_cast<int>(all[1]), static_cast<int>(all[2]), all[3] / ranks.count(),
             all[4] / ranks.count()};
}

/// Each of several processes writes to a folder of its own. The first one collects their records at the end.
eval::Outcome run_shared(const Ranks& ranks, Session& session, eval::Evaluation& evaluation, const std::string& folder,
                         eval::RecordFile* whole) {
  const std::string hash = fmt::format("{:016x}", session.model().hash());
  if (whole != nullptr) {
    eval::begin_process_folders(folder, ranks.count());
    eval::repaired_process_records(folder, hash);
  }
  ranks.wait();  // existing records are complete
  evaluation.known = eval::known_in(folder);
  evaluation.shard = {ranks.index(), ranks.count()};
  ranks.wait();  // all processes have read them
  eval::Outcome outcome;
  {
    eval::RecordFile own(eval::process_folder(folder, ranks.index()), hash);
    outcome = eval::run(session, evaluation, own,
                        whole != nullptr ? eval_progress() : eval::Progress{{}, eval_progress().on_failure});
  }
  ranks.wait();
  if (whole != nullptr) eval::collect_process_folders(folder, hash, evaluation, *whole);
  return outcome;
}

eval::Outcome run_alone(Session& session, const eval::Evaluation& evaluation, const std::string& folder,
                        eval::RecordFile& records) {
  eval::collect_process_folders(folder, fmt::format("{:016x}", session.model().hash()), evaluation,
                                records);  // of processes that were killed
  try {
    return eval::run(session, evaluation, records, eval_progress());
  } catch (const Interrupted&) {
    log().info("{} has {} records: winnow eval report {} shows them, and the same command goes on", folder,
               records.records().size(), folder);
    throw;
  }
}

/// Failures, reported when the other processes have ended.
struct Failures {
  int samples = 0;
  int lines = 0;
};

Failures measure(Raw& r) {
  const Ranks ranks;
  eval::Evaluation evaluation = evaluation_of(r);
  if (ranks.count() > 1 && evaluation.shard.count > 1)
    throw UsageError("--shard does not go with mpirun, which shares the samples itself");
  if (!ranks.is_first()) set_verbosity(Verbosity::quiet);
  Failures failures;
  r.task.on_bad_line = [&](const std::string& sentence) {
    ++failures.lines;
    if (ranks.is_first()) log().error("{}", sentence);
  };
  r.task.on_left_out = [](const std::string& sentence) { log().warn("{}", sentence); };
  const auto model = Model::load(r.options.model, r.options.loading);
  evaluation.tasks = eval::make_tasks(r.tasks, *model, r.task);
  evaluation.limits = prompt_limits(r.lengths, r.options.loading, model->info());
  if (r.common.raw) without_template(evaluation);
  std::optional<eval::RecordFile> records;
  if (ranks.is_first()) {
    records.emplace(r.output, fmt::format("{:016x}", model->hash()));
    say_repairs(r.output, records->repairs());
    say_unmarked(r.output);
  }
  Session session(model, r.options.session);
  session.on_stop(interrupted);
  auto outcome = ranks.count() == 1 ? run_alone(session, evaluation, r.output, *records)
                                    : run_shared(ranks, session, evaluation, r.output, records ? &*records : nullptr);
  add_up(ranks, outcome);
  if (!ranks.is_first()) return {};
  print_outcome(outcome, *records);
  failures.samples = outcome.failed;
  return failures;
}

void run(Raw& r) {
  check_common(r.common, r.options);
  const Failures failures = measure(r);
  if (failures.samples + failures.lines > 0)
    throw InputError(
        fmt::format("{} samples could not be measured and {} lines were no samples", failures.samples, failures.lines));
}

void list() {
  std::string out;
  for (const auto& task : eval::list_tasks())
    out += fmt::format("{:<32} {:<60} {:<26} {}\n", task.name, task.source, task.metric, task.protocol);
  write_stdout(out);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto* const command = app.add_subcommand("eval", "measure methods on tasks, resumably");
  const auto raw = std::make_shared<Raw>();
  add_measuring_options(*command, raw->common, raw->options);
  add_options(*command, *raw);
  auto* const tasks = command->add_subcommand("tasks", "list the tasks with source, metric and what the question is");
  tasks->callback([] { list(); });
  add_eval_reports(*command);
  command->footer(
      "Examples:\n  winnow eval longbench/hotpotqa -m model.gguf --data DATA --kv full,snapkv,ems --budget 128,512 -o "
      "results\n  winnow eval documents/hotpotqa -m model.gguf --data DATA --kv full,samkv,reuse,epic -o asked");
  command->callback([raw, command] {
    if (command->get_subcommands().empty()) run(*raw);
  });
}

}  // namespace winnow::cli
