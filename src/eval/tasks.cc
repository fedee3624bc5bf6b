// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "eval/method.h"
#include "eval/tasks/all.h"
#include "eval/tasks/origins.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

bool is_of_group(const TaskInfo& task, const std::string& name) { return task.name.starts_with(name + "/"); }

UsageError unknown(const std::string& name) {
  return UsageError(
      fmt::format("there is no task {}: {}", name,
                  is_method(name) ? fmt::format("separate the elements of a list with commas, as in --kv full,{}", name)
                                  : "see winnow eval tasks"));
}

bool has_files(const TaskInfo& task, const std::string& data) {
  const auto is_there = [&](const std::string& path) {
    return !path.empty() && std::filesystem::exists(std::filesystem::path(data) / path);
  };
  return task.needs.empty() || is_there(task.needs) || is_there(task.instead);
}

bool is_file(const std::string& name, const TaskOptions& options) {
  return name.ends_with(".jsonl") || is_ruler_file(name, options) || is_documents_file(name, options);
}

/// Throws InputError that names all missing files at once.
void check_at_hand(std::span<const std::string> names, const TaskOptions& options) {
  std::vector<const TaskInfo*> lacking;
  for (const auto& name : names) {
    if (is_file(name, options)) continue;
    const auto meant = tasks_meant(name);
    if (at_hand(meant, options.data).tasks.empty()) lacking.insert(lacking.end(), meant.begin(), meant.end());
  }
  if (!lacking.empty()) throw InputError(at_hand(lacking, options.data).lacking);
}

void add_meant(const std::string& name, const Model& model, const TaskOptions& options, std::vector<Task>& to) {
  const auto found = at_hand(tasks_meant(name), options.data);
  if (!found.lacking.empty() && options.on_left_out) options.on_left_out(found.lacking);
  for (const auto* task : found.tasks) to.push_back(task->make(model, options));
}

}  // namespace

const std::vector<TaskInfo>& list_tasks() {
  static const auto out = [] {
    std::vector<TaskInfo> all;
    add_longbench(all);
    add_niah(all);
    add_needles(all);
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

AtHand at_hand(std::span<const TaskInfo* const> tasks, const std::string& data) {
  AtHand out;
  std::vector<std::string> others;
  std::vector<std::string> files;
  for (const auto* task : tasks) {
    if (has_files(*task, data)) {
      out.tasks.push_back(task);
      continue;
    }
    others.push_back(task->name);
    const auto file = task->instead.empty() ? task->needs : fmt::format("{} or {}", task->needs, task->instead);
    if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  }
  if (others.empty()) return out;
  if (!data.empty() && !std::filesystem::is_directory(data)) throw InputError(fmt::format("{}: no such folder", data));
  const auto who = others.size() == 1 ? others.front() : fmt::format("{} tasks", others.size());
  const auto what = data.empty()
                        ? fmt::format("give --data DIR or set WINNOW_DATA to a folder with {}", fmt::join(files, ", "))
                        : fmt::format("the data folder has no {}", fmt::join(files, ", no "));
  const auto origins = origins_of(files);
  out.lacking =
      fmt::format("{} cannot be measured: {}{}", who, what, origins.empty() ? "" : fmt::format(" ({})", origins));
  return out;
}

std::vector<Task> make_tasks(std::span<const std::string> names, const Model& model, const TaskOptions& options) {
  check_at_hand(names, options);
  std::vector<Task> out;
  for (const auto& name : names) {
    if (name.ends_with(".jsonl")) {
      out.push_back(custom_task(name, options));
    } else if (is_ruler_file(name, options)) {
      out.push_back(ruler_file(name, options));
    } else if (is_documents_file(name, options)) {
      out.push_back(documents_file(name, options));
    } else {
      add_meant(name, model, options, out);
    }
  }
  return out;
}

}  // namespace winnow::eval
