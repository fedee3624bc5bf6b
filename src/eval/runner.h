// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "eval/group.h"
#include "eval/record_file.h"
#include "eval/task.h"

namespace winnow::eval {

/// The share of the groups that this process measures: every `count`th, beginning with `index`.
struct Shard {
  int index = 0;
  int count = 1;
};

/// An evaluation: every sample of every task, by every protocol, with every method.
struct Evaluation {
  std::vector<Task> tasks;
  std::vector<Method> methods;
  std::vector<Protocol> protocols;
  PromptLimits limits;
  Shard shard;
  std::set<Key> known;  ///< measured by other processes, left out
};

struct Progress {
  std::function<void(int done, int all, const std::string& what)> on_group;  ///< groups done, all groups, and the one
                                                                             ///< that begins
  std::function<void(const std::string& sentence)> on_failure;  ///< for each sample that failed; the run continues
};

/// The work of a run, known before it begins.
struct Outlook {
  int samples = 0;
  int records = 0;  ///< to be measured
  int known = 0;    ///< existing records
};

/// Refuses to mix records of a prompt that has changed. Tokenizes the prompts of the evaluations' shares that have
/// known records. Throws InputError (naming the sample and both hashes), and what tokenized() throws.
void check_prompts(const Model& model, std::span<const Evaluation> evaluations, const std::set<Key>& known);

/// The outlook of evaluations that run one after the other, of each only its share. It reads no prompts, so it compares
/// records without the hashes of their prompts, which check_prompts() checks.
Outlook outlook(std::span<const Evaluation> evaluations, const std::set<Key>& known);

/// The outcome of a run.
struct Outcome {
  int measured = 0;  ///< groups
  int known = 0;     ///< groups measured before
  int failed = 0;
  double model_seconds = 0;  ///< prefill and decode
  double seconds = 0;
};

/// Measures the records that `records` lacks. The text of a group is read once for all methods that it lacks, and its
/// records are added together. Throws UsageError if a method asks over documents and a sample has none, or if a task
/// refuses a method; Interrupted; InputError for a full disk. Added records stay.
Outcome run(Session& session, const Evaluation& evaluation, RecordFile& records, const Progress& progress);

}  // namespace winnow::eval
