// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "eval/tasks.h"

namespace winnow::papers {

/// A task with its samples.
struct Made {
  const eval::TaskInfo* info;
  eval::Task task;
};

/// Throws what making the tasks throws.
std::vector<Made> make(std::span<const eval::TaskInfo* const> tasks, const Model& model,
                       const eval::TaskOptions& options);

std::size_t count_samples(const std::vector<Made>& made);

/// The values of a label among the samples.
std::set<std::string> values_of(const std::vector<Made>& made, const char* label);

}  // namespace winnow::papers
