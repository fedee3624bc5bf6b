// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/task.h"

namespace winnow::eval {

/// What a user says about tasks.
struct TaskOptions {
  std::string data;          ///< folder with the tasks' files
  int limit = 0;             ///< samples of each task, 0: all
  std::vector<int> lengths;  ///< of prompts that are made up: tokens, or what a task says
  int shots = 0;             ///< examples before each question of multiple choice
  std::uint32_t seed = 1;    ///< of generated samples
  /// Told of a line that is no sample ("FILE line N: why"); the others are read.
  std::function<void(const std::string&)> on_bad_line;
  /// Told of a task of a group that is left out, and why.
  std::function<void(const std::string&)> on_left_out;
};

/// A task as `winnow eval tasks` lists it.
struct TaskInfo {
  std::string name;
  std::string source;  ///< paper or set
  std::string metric;
  std::string protocol;  ///< what of the prompt is the question
  std::function<Task(const Model& model, const TaskOptions& options)> make;
  std::string needs =
      {};  ///< file or folder below the data folder without which its group goes without it; empty: no such
};

const std::vector<TaskInfo>& list_tasks();

/// Tasks by their names, in that order; a name of a group (`longbench`) stands for all of it, FILE.jsonl for the
/// samples in it, ruler/NAME for those in the data folder's ruler/NAME.jsonl when there is such a file. Throws
/// UsageError for what is no task, InputError for a file that is not there.
std::vector<Task> make_tasks(std::span<const std::string> names, const Model& model, const TaskOptions& options);

}  // namespace winnow::eval
