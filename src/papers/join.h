// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "papers/plan.h"

namespace winnow::papers {

/// The evaluations of all plans, such that a task that several of them measure with the same samples, protocols and
/// limits is there once, with the methods of all. So its prompts are read once for all recipes.
std::vector<eval::Evaluation> joined(std::vector<Plan> plans);

}  // namespace winnow::papers
