#pragma once

#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Each adds its tasks to the list.
void add_longbench(std::vector<TaskInfo>& to);

}  // namespace winnow::eval
