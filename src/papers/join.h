// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "papers/plan.h"

namespace winnow::papers {

/// Joins the evaluations of all plans: a task that several of them measure with the same samples, protocols and limits
/// occurs once, with all their methods. So its prompts are read once for all recipes.
std::vector<eval::Evaluation> joined(std::vector<Plan> plans);

}  // namespace winnow::papers
