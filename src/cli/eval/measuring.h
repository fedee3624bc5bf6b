// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>

#include "cli/bad_lines.h"
#include "cli/eval/ranks.h"
#include "eval/record_file.h"
#include "eval/runner.h"
#include "eval/tasks.h"

namespace winnow::cli {

/// Parses the share I/N of the samples. Throws UsageError, also if mpirun shares them already.
eval::Shard parse_shard(const std::string& text, const Ranks& ranks);

/// Adds --memory, for tasks that serve requests.
void add_request_memory(CLI::App& command, eval::TaskOptions& to);

/// Sets the raw format, for models without a chat template.
void without_template(std::span<eval::Task> tasks);

/// Counts samples that could not be measured; they are reported when the other processes have ended.
struct Failures {
  int samples = 0;
  BadLines lines;  ///< lines that are not samples

  /// Throws InputError if there are any.
  void check() const;
};

/// Reports problems with the tasks' files on stderr, once. `failures`, which counts bad lines, must outlive the
/// options.
void report_lines(const Ranks& ranks, eval::TaskOptions& options, Failures& failures);

/// Measures to a folder of records, alone or with the other processes of an mpirun.
class Measuring {
 public:
  /// Opens the folder's file on the first process, and reports its repairs. `shard` applies to all evaluations.
  /// `report` is the command that shows the folder's records. Throws what RecordFile throws.
  Measuring(const Ranks& ranks, const Model& model, std::string folder, eval::Shard shard, std::string report);

  /// Reports how much is missing, and measures it. All processes call this once, with the same evaluations, and it sets
  /// their shards. Throws what eval::check_prompts() and eval::run() throw; if the user stopped it, says how to
  /// continue.
  void run(Session& session, std::span<eval::Evaluation> evaluations);

  /// Prints the sums of all runs and processes, on the first process. Returns how many samples could not be measured:
  /// those of all processes on the first one, 0 on the others.
  int end();

  /// Prints the results of the folder's records, and the command that draws them, on the first process.
  void show_result(const std::string& tables) const;

 private:
  void say_outlook(const Model& model, std::span<const eval::Evaluation> evaluations) const;
  void say_how_to_go_on() const;
  eval::Outcome run_alone(Session& session, const eval::Evaluation& evaluation);
  eval::Outcome run_shared(Session& session, eval::Evaluation& evaluation);

  const Ranks& ranks_;
  std::string folder_;
  std::string hash_;
  eval::Shard shard_;
  std::string report_;
  std::optional<eval::RecordFile> records_;  ///< on the first process
  eval::Outcome sum_;                        ///< of this process
};

}  // namespace winnow::cli
