// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/runner.h"
#include "papers/sheet.h"

namespace winnow::papers {

/// The work of a run of a recipe with a model and a data folder.
struct Plan {
  std::vector<eval::Evaluation> evaluations;  ///< one for each task of each measure; none: nothing can be measured
  Sheet sheet;
  std::vector<std::string> unused;  ///< the user's options that no measure uses
};

/// Plans to measure the samples of the recipe's cells. Leaves out what cannot be measured, and notes why: tasks without
/// their files, lengths beyond the model's context (unless `limits` or the measure allow them). If `tasks` has lengths,
/// they replace the recipe's in all tasks that have lengths. Prompts that the paper cuts are cut to fit the context;
/// `limits.max_prompt`, if any, limits these and all prompts from files. Throws what making the tasks throws, except
/// for missing files.
Plan plan(const Recipe& recipe, const Model& model, const eval::TaskOptions& tasks, const eval::PromptLimits& limits);

/// One sentence for each of the recipe's data files and lengths that is not available. `data` may be empty (unknown),
/// and `context` 0 (unknown).
std::vector<std::string> not_at_hand(const Recipe& recipe, const std::string& data, int context);

}  // namespace winnow::papers
