// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/runner.h"
#include "papers/sheet.h"

namespace winnow::papers {

/// What a run of a recipe does with a model and a folder of data.
struct Plan {
  std::vector<eval::Evaluation> evaluations;  ///< one for each task of each measure; none: nothing can be measured
  Sheet sheet;
  std::vector<std::string> unused;  ///< options of the user's that no measure goes by
};

/// Measures the samples that the recipe's cells are about. Leaves out what cannot be measured, and notes why: tasks
/// without their files, lengths beyond the model's context (unless `limits` or the measure allow them). The lengths of
/// `tasks`, if any, stand for the recipe's, where a task goes by lengths. Prompts that the paper cuts are cut to what
/// the context holds; `limits.max_prompt`, if any, is the most of these and of all that stand in files. Throws what
/// making the tasks throws besides missing files.
Plan plan(const Recipe& recipe, const Model& model, const eval::TaskOptions& tasks, const eval::PromptLimits& limits);

/// What of a recipe's data and lengths is at hand: a sentence for each thing that is not. `data` may be empty
/// (unknown), `context` 0 (likewise).
std::vector<std::string> not_at_hand(const Recipe& recipe, const std::string& data, int context);

}  // namespace winnow::papers
