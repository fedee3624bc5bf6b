// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/task.h"

namespace winnow::eval {

/// Texts, words and wordings of made-up samples, so that parameters searched on one split are judged on the other.
enum class Split : std::uint8_t { tuning, test };

/// The user's options for tasks.
struct TaskOptions {
  std::string data;           ///< folder with the tasks' files
  int limit = 0;              ///< samples of each task, 0: all
  std::vector<int> lengths;   ///< of generated prompts: tokens, or another unit that a task names
  int shots = 0;              ///< examples before each question of multiple choice
  std::vector<int> requests;  ///< how many are served together
  int answer = 0;             ///< tokens of answers, whatever they say; 0: the task's own number
  std::size_t memory = std::numeric_limits<std::size_t>::max();  ///< bytes that requests may be promised together
  std::vector<int> depths;                                       ///< percent of the prompt at which an answer is hidden
  Split split = Split::test;                                     ///< of needles
  std::vector<std::string> kinds;                                ///< of their answers; empty: the usual five
  int chunk = 0;                           ///< tokens between the borders at and off which they stand; 0: anywhere
  std::optional<PromptFormat> format;      ///< the user's, of prompts that are made up; not set: the task's own
  std::vector<std::uint32_t> seeds = {1};  ///< of samples that are made up: each makes samples of its own
  /// Called with "FILE line N: why" for a line that is no sample; the others are read.
  std::function<void(const std::string&)> on_bad_line;
  /// Called with the reason when tasks of a group are left out.
  std::function<void(const std::string&)> on_left_out;
};

/// A task as `winnow eval tasks` lists it.
struct TaskInfo {
  /// Options that some tasks go by and others do not, as bits.
  enum Option : unsigned {
    length = 1,
    seed = 2,
    memory = 4,
    max_prompt = 8,  ///< prompts are texts from files: nothing is hidden in them that a cut could take away
  };

  std::string name;
  std::string source;  ///< paper or set
  std::string metric;
  std::string protocol;  ///< which part of the prompt is the question
  std::function<Task(const Model& model, const TaskOptions& options)> make;
  std::string needs = {};    ///< in the data folder: without it the task is left out of its group; empty: nothing
  std::string instead = {};  ///< what serves in its place; empty: nothing
  unsigned options = 0;

  bool takes(Option option) const { return (options & option) != 0; }
};

const std::vector<TaskInfo>& list_tasks();

/// The task of a name, or those of a group. Throws UsageError where there is none.
std::vector<const TaskInfo*> tasks_meant(const std::string& name);

/// Tasks by whether the data folder has what they need.
struct AtHand {
  std::vector<const TaskInfo*> tasks;
  std::string lacking;  ///< a sentence about the others; empty: there are none
};

/// Throws InputError where a task lacks something and there is no such folder. `data` may be empty: the user gave none.
AtHand at_hand(std::span<const TaskInfo* const> tasks, const std::string& data);

/// Tasks by their names, in that order. A group's name (`longbench`) stands for all of its tasks, FILE.jsonl for the
/// samples in that file, ruler/NAME for those in the data folder's ruler/NAME.jsonl, if there is such a file, and
/// documents/multi-doc/NAME and documents-fidelity/multi-doc/NAME likewise. Tasks of a group that lack their files are
/// left out.
/// Throws UsageError for an unknown task, InputError for a missing file, and where nothing is left of a group.
std::vector<Task> make_tasks(std::span<const std::string> names, const Model& model, const TaskOptions& options);

/// A sample as a line of FILE.jsonl, whose id names the task, too. Throws UsageError where it is none of a question and
/// its answers.
std::string line_of(const Sample& sample);

}  // namespace winnow::eval
