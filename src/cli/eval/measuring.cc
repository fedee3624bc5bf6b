// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/measuring.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "base/counted.h"
#include "base/log.h"
#include "base/shell.h"
#include "cli/eval/progress.h"
#include "cli/output.h"
#include "cli/sizes.h"
#include "eval/process_folders.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

void say_repairs(const std::string& folder, const eval::Repairs& repairs) {
  if (repairs.cut_lines + repairs.partial_groups > 0)
    log().warn("{}: {}, {} with records missing: measured again", folder, counted(repairs.cut_lines, "cut line"),
               counted(repairs.partial_groups, "group"));
}

void say_unmarked(const std::string& folder) {
  for (const auto& path : eval::unmarked_process_folders(folder))
    log().warn(
        "{} is not part of this run (it has no file winnow-part) and is not used; winnow eval merge can add its "
        "records",
        path);
}

void add(const eval::Outcome& outcome, eval::Outcome& to) {
  to.measured += outcome.measured;
  to.known += outcome.known;
  to.failed += outcome.failed;
  to.model_seconds += outcome.model_seconds;
  to.seconds += outcome.seconds;
}

/// The sums of all processes, on the first one.
eval::Outcome of_all(const Ranks& ranks, const eval::Outcome& outcome) {
  double all[] = {1.0 * outcome.measured, 1.0 * outcome.known, 1.0 * outcome.failed, outcome.model_seconds,
                  outcome.seconds};
  ranks.add_up(all);
  return {static_cast<int>(all[0]), static_cast<int>(all[1]), static_cast<int>(all[2]), all[3] / ranks.count(),
          all[4] / ranks.count()};
}

}  // namespace

eval::Shard parse_shard(const std::string& text, const Ranks& ranks) {
  eval::Shard out;
  char more = 0;
  if (std::sscanf(text.c_str(), "%d/%d%c", &out.index, &out.count, &more) != 2 || out.index < 0 ||
      out.index >= out.count)
    throw UsageError(fmt::format("--shard {} is not possible: give I/N with 0 <= I < N", text));
  if (ranks.count() > 1 && out.count > 1)
    throw UsageError("--shard cannot be combined with mpirun, which divides the samples itself");
  return out;
}

void add_request_memory(CLI::App& command, eval::TaskOptions& to) {
  command.add_option_function<std::string>(
      "--memory", [&to](const std::string& text) { to.memory = size_of("--memory", text); },
      "memory that all requests may use together, such as 1GiB (throughput; default: no limit)");
}

void without_template(std::span<eval::Task> tasks) {
  for (auto& task : tasks) {
    for (auto& sample : task.samples) sample.prompt.format = PromptFormat::raw;
  }
}

void Failures::check() const {
  if (samples + lines.count() > 0)
    throw InputError(fmt::format("{} could not be measured and {} not valid{}", counted(samples, "sample"),
                                 counted(lines.count(), "line was", "lines were"), lines.named()));
}

void report_lines(const Ranks& ranks, eval::TaskOptions& options, Failures& failures) {
  const bool is_first = ranks.is_first();
  options.on_bad_line = [&failures, is_first](const std::string& sentence) {
    is_first ? failures.lines.add(sentence) : failures.lines.add();
  };
  options.on_left_out = [](const std::string& sentence) { log().warn("{}", sentence); };
}

Measuring::Measuring(const Ranks& ranks, const Model& model, std::string folder, eval::Shard shard, std::string report)
    : ranks_(ranks),
      folder_(std::move(folder)),
      hash_(fmt::format("{:016x}", model.hash())),
      shard_(shard),
      report_(std::move(report)) {
  if (!ranks.is_first()) return;
  records_.emplace(folder_, hash_);
  say_repairs(folder_, records_->repairs());
  say_unmarked(folder_);
}

/// Each of several processes writes to its own folder. The first one collects their records at the end.
eval::Outcome Measuring::run_shared(Session& session, eval::Evaluation& evaluation) {
  if (records_) {
    eval::begin_process_folders(folder_, ranks_.count());
    eval::repaired_process_records(folder_, hash_);
  }
  ranks_.wait();  // existing records are complete
  evaluation.known = eval::known_in(folder_);
  evaluation.shard = {ranks_.index(), ranks_.count()};
  ranks_.wait();  // all processes have read them
  eval::Outcome outcome;
  {
    eval::RecordFile own(eval::process_folder(folder_, ranks_.index()), hash_);
    outcome = eval::run(session, evaluation, own,
                        records_ ? eval_progress() : eval::Progress{{}, eval_progress().on_failure});
  }
  ranks_.wait();
  if (records_) eval::collect_process_folders(folder_, hash_, evaluation, *records_);
  return outcome;
}

eval::Outcome Measuring::run_alone(Session& session, const eval::Evaluation& evaluation) {
  eval::collect_process_folders(folder_, hash_, evaluation, *records_);  // from processes that were killed
  return eval::run(session, evaluation, *records_, eval_progress());
}

/// Counts the records of all processes, which are in their own folders.
void Measuring::say_how_to_go_on() const {
  const auto count = eval::records_in(folder_).size();
  if (count == 0) {
    log().info("nothing was measured yet; run the same command again to continue");
  } else {
    log().info("{0} has {1}: {2} {0} shows them, and the same command continues", folder_, counted(count, "record"),
               report_);
  }
}

/// Counts the records of killed processes, too.
void Measuring::say_outlook(const Model& model, std::span<const eval::Evaluation> evaluations) const {
  std::set<eval::Key> known;
  for (const auto& record : records_->records()) known.insert(record.key);
  for (const auto& record : eval::repaired_process_records(folder_, hash_)) known.insert(record.key);
  eval::check_prompts(model, evaluations, known);
  const auto out = eval::outlook(evaluations, known);
  log().info("{}, {} to measure, {} known", counted(out.samples, "sample"), counted(out.records, "record"), out.known);
}

void Measuring::run(Session& session, std::span<eval::Evaluation> evaluations) {
  for (auto& evaluation : evaluations) evaluation.shard = shard_;
  if (records_) say_outlook(session.model(), evaluations);
  try {
    for (auto& evaluation : evaluations)
      add(ranks_.count() == 1 ? run_alone(session, evaluation) : run_shared(session, evaluation), sum_);
  } catch (const Interrupted&) {
    ranks_.say_last([this] { say_how_to_go_on(); });
    throw;
  }
}

int Measuring::end() {
  const auto all = of_all(ranks_, sum_);
  if (!records_) return 0;
  end_eval_progress();
  log().info("{} measured, {} known before, {} failed; {:.1f} s, {:.0f} % of it in the model; {} in all",
             counted(all.measured, "group"), all.known, all.failed, all.seconds,
             all.seconds > 0 ? 100 * all.model_seconds / all.seconds : 0.0,
             counted(records_->records().size(), "record"));
  return all.failed;
}

void Measuring::show_result(const std::string& tables) const {
  show(tables);
  if (shard_.count > 1)
    return log().info("this was share {} of {}: measure the others in the same way", shard_.index, shard_.count);
  const auto folder = std::filesystem::path(folder_).lexically_normal();
  const auto name = (folder.has_filename() ? folder : folder.parent_path()).string();
  log().info("`{} {} -o {}` draws it", report_, shell_word(folder_), shell_word(name + ".html"));
}

}  // namespace winnow::cli
