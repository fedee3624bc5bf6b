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

/// The share of the samples that I/N means. Throws UsageError, also where mpirun shares them already.
eval::Shard parse_shard(const std::string& text, const Ranks& ranks);

/// --memory, for tasks that serve requests.
void add_request_memory(CLI::App& command, eval::TaskOptions& to);

/// Prompts as they are, for models without a chat template.
void without_template(std::span<eval::Task> tasks);

/// Samples that could not be measured: reported when the other processes have ended.
struct Failures {
  int samples = 0;
  BadLines lines;  ///< that are no samples

  /// Throws InputError when there are some.
  void check() const;
};

/// Sends what is wrong with the tasks' files to stderr, once. Bad lines are counted in `failures`, which must outlive
/// the options.
void report_lines(const Ranks& ranks, eval::TaskOptions& options, Failures& failures);

/// A folder of records to which this process measures, alone or with the others of an mpirun.
class Measuring {
 public:
  /// Opens the folder's file on the first process, and says what was repaired. `shard`: of all evaluations. `report`:
  /// the command that shows the folder's records. Throws what RecordFile throws.
  Measuring(const Ranks& ranks, const Model& model, std::string folder, eval::Shard shard, std::string report);

  /// Measures what is not there yet, and first says how much that is. All processes call this once, with the same
  /// evaluations, whose shares it sets. Throws what eval::check_prompts() and eval::run() throw; when the user has
  /// stopped it, says how to go on.
  void run(Session& session, std::span<eval::Evaluation> evaluations);

  /// Prints the sums of all runs and processes, on the first. Returns how many samples could not be measured: on the
  /// first process those of all, on the others 0.
  int end();

  /// Prints what the folder's records come to, and the command that draws it. On the first process.
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
