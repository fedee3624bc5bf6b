// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Samples of one of LongBench's data sets: from the official file in the data folder, or else from the extract.
/// `change` edits each sample, and throws InputError if it does not fit the task. Throws InputError if there is neither
/// file, or no sample. REQUIRES: a data set's name.
std::vector<Sample> longbench_samples(const std::string& name, const TaskOptions& options,
                                      const std::function<void(Sample&)>& change);

/// A data set's metric. REQUIRES: its name.
Metric longbench_metric(const std::string& name);

}  // namespace winnow::eval
