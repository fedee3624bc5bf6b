#pragma once

#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Each adds its tasks to the list.
void add_longbench(std::vector<TaskInfo>& to);
void add_niah(std::vector<TaskInfo>& to);
void add_fidelity(std::vector<TaskInfo>& to);

/// A file of samples: one JSON object a line with text, question (or input), outputs, and maybe id, metric, classes, max_tokens.
Task custom_task(const std::string& path, const TaskOptions& options);

}  // namespace winnow::eval
