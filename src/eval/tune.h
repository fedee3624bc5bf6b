// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/statistics.h"
#include "eval/tasks.h"

namespace winnow::eval {

/// Prompts without answers, one JSON object a line with text and question (or input, or prompt) and maybe id, which
/// caches are to follow the full one on (following()). Throws InputError for a file without any.
Task examples(const std::string& path, const TaskOptions& options);

/// How one way of keeping the cache does on them.
struct Trial {
  CacheOptions cache;
  Mean agreement;  ///< steps with the full cache's best token
  double kl = 0;   ///< nats a step
  double entries = 0;
  double bytes_held = 0;
  int samples = 0;
  int whole = 0;  ///< of them, prompts that its budget holds whole: they count as the full cache in its type
};

/// What the plan's caches came to, from the fewest bytes on; those that hold all prompts whole, or cannot read one, are
/// left out. REQUIRES: the plan has the full cache in each type.
std::vector<Trial> trials_of(const Model& model, const Plan& plan, const std::vector<Record>& records);

/// The first that reaches the bound, nothing where none does. The full cache in f16 is what they are compared with, and
/// no candidate.
std::optional<Trial> cheapest(std::span<const Trial> trials, double least_agreement);
/// The one that comes nearest to the full cache.
std::optional<Trial> nearest(std::span<const Trial> trials);

}  // namespace winnow::eval
