// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/runner.h"
#include "eval/statistics.h"
#include "eval/tasks.h"

namespace winnow::eval {

/// Prompts without answers, on which caches are compared with the full one (agreeing()). One JSON object a line, with
/// text and question (or input, or prompt), and optionally id. Throws InputError for a file without prompts.
Task examples(const std::string& path, const TaskOptions& options);

/// The result of one cache on the prompts.
struct Trial {
  CacheOptions cache;
  Mean agreement;  ///< steps with the full cache's best token
  double kl = 0;   ///< nats a step
  double entries = 0;
  double bytes_held = 0;
  int samples = 0;
  int whole = 0;  ///< of these, prompts that fit into its budget and count as the full cache of its type
};

/// Results of the evaluation's caches, in ascending order of bytes. Leaves out caches that keep all prompts whole or
/// cannot read one. REQUIRES: the evaluation has the full cache of each type.
std::vector<Trial> trials_of(const Model& model, const Evaluation& evaluation, const std::vector<Record>& records);

/// The first trial that reaches the bound; empty if none does. The full cache in f16, the reference, is not a
/// candidate.
std::optional<Trial> cheapest(std::span<const Trial> trials, double least_agreement);
/// The trial with the highest agreement with the full cache.
std::optional<Trial> most_faithful(std::span<const Trial> trials);

}  // namespace winnow::eval
