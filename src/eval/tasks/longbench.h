// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// The samples of one of LongBench's data sets: of the official file in the data folder, or else of the extract. Each
/// is changed by `change`, which throws InputError for what is no sample of the task. Throws InputError when there is
/// neither file, or no sample. REQUIRES: a set's name.
std::vector<Sample> longbench_samples(const std::string& name, const TaskOptions& options,
                                      const std::function<void(Sample&)>& change);

/// A set's metric. REQUIRES: its name.
Metric longbench_metric(const std::string& name);

}  // namespace winnow::eval
