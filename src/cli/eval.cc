#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/cache_lists.h"
#include "cli/commands.h"
#include "cli/output.h"
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
  command.add_option("--limit", r.task.limit, "samples of each task (default all)")->check(CLI::PositiveNumber);
  command.add_option("--data", r.task.data, "folder with the tasks' files")->envname("WINNOW_DATA");
  command.add_option("--length", r.task.lengths, "of prompts that are made up: tokens, or lines or keys where a task says so")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  command.add_option("--shots", r.task.shots, "examples before each question of short/*: the file's first, which are not asked then")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", r.task.seed, "of what is made up");
  command.add_option("--shard", r.shard, "I/N: measure the Ith of N parts, from 0; winnow eval merge puts them together");
  command.add_option("-o,--output", r.output, "folder of the records; what is there is not measured again");
}

eval::Shard parse_shard(const std::string& text) {
  eval::Shard out;
  char more = 0;
  if (std::sscanf(text.c_str(), "%d/%d%c", &out.index, &out.count, &more) != 2 || out.index < 0 || out.index >= out.count)
    throw UsageError(fmt::format("--shard {}: give I/N with 0 <= I < N", text));
  return out;
}

eval::Plan plan_of(const Raw& r) {
  eval::Plan plan;
  plan.caches = crossed(r.caches);
  plan.shard = parse_shard(r.shard);
  for (const auto& name : r.protocols)
    plan.protocols.push_back(name == "question-aware" ? eval::Protocol::aware : eval::Protocol::agnostic);
  if (r.tasks.empty()) throw UsageError("no task: winnow eval tasks lists them");
  if (r.output.empty()) throw UsageError("no folder for the records: give one with -o");
  return plan;
}

void without_template(eval::Plan& plan) {
  for (auto& task : plan.tasks) {
    for (auto& sample : task.samples) sample.prompt.format = PromptFormat::raw;
  }
}

std::string in_words(double seconds) {
  const int minutes = static_cast<int>(seconds / 60);
  return minutes < 2 ? fmt::format("{:.0f} s", seconds) : fmt::format("{} min", minutes);
}

eval::Progress progress() {
  eval::Progress out;
  out.on_failure = [](const std::string& sentence) { log().error("{}", sentence); };
  if (isatty(STDERR_FILENO) == 0) return out;
  out.on_group = [begin = Clock::now(), first = -1](int done, int all, const std::string& what) mutable {
    if (first < 0) first = done;
    const double took = ms_since(begin) / 1000;
    const std::string left = done > first ? fmt::format(", {} left", in_words(took / (done - first) * (all - done))) : "";
    std::fputs(fmt::format("\r\033[K{} of {}{}: {}", done, all, left, what).c_str(), stderr);
    std::fflush(stderr);
  };
  return out;
}

void print_outcome(const eval::Outcome& outcome, const eval::RecordFile& records) {
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  log().info("{} groups measured, {} known before, {} failed; {:.1f} s, {:.0f} % of it in the model; {} records in all", outcome.measured,
             outcome.known, outcome.failed, outcome.seconds, outcome.seconds > 0 ? 100 * outcome.model_seconds / outcome.seconds : 0.0,
             records.records().size());
}

void run(Raw& r) {
  check_common(r.common, r.options);
  eval::Plan plan = plan_of(r);
  int bad_lines = 0;
  r.task.on_bad_line = [&bad_lines](const std::string& sentence) {
    ++bad_lines;
    log().error("{}", sentence);
  };
  r.task.on_left_out = [](const std::string& sentence) { log().warn("{}", sentence); };
  const auto model = Model::load(r.options.model, r.options.loading);
  plan.tasks = eval::make_tasks(r.tasks, *model, r.task);
  if (r.common.raw) without_template(plan);
  eval::RecordFile records(r.output, fmt::format("{:016x}", model->hash()));
  const auto& repairs = records.repairs();
  if (repairs.cut_lines + repairs.partial_groups > 0)
    log().warn("{}: {} cut line, {} groups without all their records: measured again", r.output, repairs.cut_lines, repairs.partial_groups);
  Session session(model, r.options.session);
  session.on_stop(interrupted);
  const auto outcome = eval::run(session, plan, records, progress());
  print_outcome(outcome, records);
  if (outcome.failed + bad_lines > 0)
    throw InputError(fmt::format("{} samples could not be measured and {} lines were no samples", outcome.failed, bad_lines));
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
  command->footer("Example:\n  winnow eval longbench/hotpotqa -m model.gguf --data DATA --kv full,snapkv,ems --budget 128,512 -o results");
  command->callback([raw, command] {
    if (command->get_subcommands().empty()) run(*raw);
  });
}

}  // namespace winnow::cli
