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

/// Which share of the groups this process measures: every `count`th, from the one at `index`.
struct Shard {
  int index = 0;
  int count = 1;
};

/// What is measured: every sample of every task, by every protocol, with every method.
struct Evaluation {
  std::vector<Task> tasks;
  std::vector<Method> methods;
  std::vector<Protocol> protocols;
  PromptLimits limits;
  Shard shard;
  std::set<Key> known;  ///< measured by other processes: left out
};

struct Progress {
  std::function<void(int done, int all, const std::string& what)> on_group;  ///< groups, and which begins now
  std::function<void(const std::string& sentence)>
      on_failure;  ///< a sample that could not be measured; the run continues
};

/// What a run finds before it begins.
struct Outlook {
  int samples = 0;
  int records = 0;  ///< to be measured
  int known = 0;    ///< records that are there
};

/// Refuses known records of a prompt that has changed since, for a report would mix both. Reads the prompts of the
/// evaluations' shares that have known records. Throws InputError (the sample and the hashes of both prompts), and what
/// tokenized() throws.
void check_prompts(const Model& model, std::span<const Evaluation> evaluations, const std::set<Key>& known);

/// Of evaluations that are run one after the other, each its share. No prompt is read for it, so a record is known by
/// all but its prompt's tokens: check_prompts() says whether these have changed.
Outlook outlook(std::span<const Evaluation> evaluations, const std::set<Key>& known);

/// The outcome of a run.
struct Outcome {
  int measured = 0;  ///< groups
  int known = 0;     ///< groups that had been measured before
  int failed = 0;
  double model_seconds = 0;  ///< inside the model: prefill and decode
  double seconds = 0;
};

/// Measures what `records` lacks. A group is a sample with one protocol and all methods that it lacks: its text is read
/// once for all of them, and its records are added together. Throws UsageError where a method asks over documents and a
/// sample has none, and where a task refuses a method, Interrupted, InputError (a full disk); what is in `records` by
/// then stays.
Outcome run(Session& session, const Evaluation& evaluation, RecordFile& records, const Progress& progress);

}  // namespace winnow::eval
