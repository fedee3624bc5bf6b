// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "eval/tasks/all.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

bool is_of_group(const TaskInfo& task, const std::string& name) { return task.name.starts_with(name + "/"); }

UsageError unknown(const std::string& name) {
  return UsageError(fmt::format("there is no task {}: see winnow eval tasks", name));
}

/// A task that is named is made, and says itself what it lacks. One of a group is left out.
void add_meant(const std::string& name, const Model& model, const TaskOptions& options, std::vector<Task>& to) {
  for (const auto* task : tasks_meant(name)) {
    const auto lacks = task->name == name ? "" : lacking(*task, options.data);
    if (lacks.empty()) {
      to.push_back(task->make(model, options));
    } else if (options.on_left_out) {
      options.on_left_out(fmt::format("{} is left out: {}", task->name, lacks));
    }
  }
}

}  // namespace

const std::vector<TaskInfo>& list_tasks() {
  static const auto out = [] {
    std::vector<TaskInfo> all;
    add_longbench(all);
    add_niah(all);
    add_ruler(all);
    add_lines(all);
    add_kv_retrieval(all);
    add_short(all);
    add_perplexity(all);
    add_documents(all);
    add_fidelity(all);
    add_attention(all);
    add_efficiency(all);
    add_throughput(all);
    return all;
  }();
  return out;
}

std::vector<const TaskInfo*> tasks_meant(const std::string& name) {
  std::vector<const TaskInfo*> out;
  for (const auto& task : list_tasks()) {
    if (task.name == name || is_of_group(task, name)) out.push_back(&task);
  }
  if (out.empty()) throw unknown(name);
  return out;
}

std::string lacking(const TaskInfo& task, const std::string& data) {
  const auto is_there = [&](const std::string& path) {
    return !path.empty() && std::filesystem::exists(std::filesystem::path(data) / path);
  };
  if (task.needs.empty() || is_there(task.needs) || is_there(task.instead)) return {};
  return fmt::format("the data folder has no {}{}", task.needs, task.instead.empty() ? "" : " and no " + task.instead);
}

std::vector<Task> make_tasks(std::span<const std::string> names, const Model& model, const TaskOptions& options) {
  std::vector<Task> out;
  for (const auto& name : names) {
    const auto before = out.size();
    if (name.ends_with(".jsonl")) {
      out.push_back(custom_task(name, options));
    } else if (is_ruler_file(name, options)) {
      out.push_back(ruler_file(name, options));
    } else if (is_documents_file(name, options)) {
      out.push_back(documents_file(name, options));
    } else {
      add_meant(name, model, options, out);
    }
    if (out.size() == before) throw unknown(name);
  }
  return out;
}

}  // namespace winnow::eval
