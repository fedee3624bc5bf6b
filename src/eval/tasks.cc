#include "eval/tasks.h"

#include <spdlog/fmt/fmt.h>

#include "eval/tasks/all.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

/// Whether a task is meant by a name: its own, or that of its group.
bool is_meant(const TaskInfo& task, const std::string& name) { return task.name == name || task.name.starts_with(name + "/"); }

}  // namespace

const std::vector<TaskInfo>& list_tasks() {
  static const auto out = [] {
    std::vector<TaskInfo> all;
    add_longbench(all);
    add_niah(all);
    add_fidelity(all);
    return all;
  }();
  return out;
}

std::vector<Task> make_tasks(std::span<const std::string> names, const Model& model, const TaskOptions& options) {
  std::vector<Task> out;
  for (const auto& name : names) {
    if (name.ends_with(".jsonl")) {
      out.push_back(custom_task(name, options));
      continue;
    }
    const auto before = out.size();
    for (const auto& task : list_tasks()) {
      if (is_meant(task, name)) out.push_back(task.make(model, options));
    }
    if (out.size() == before) throw UsageError(fmt::format("there is no task {}: see winnow eval tasks", name));
  }
  return out;
}

}  // namespace winnow::eval
