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

/// Texts, words and wordings of generated samples: parameters tuned on one split are tested on the other.
enum class Split : std::uint8_t { tuning, test };

/// The user's options for tasks.
struct TaskOptions {
  std::string data;           ///< folder with the tasks' files
  int limit = 0;              ///< samples of each task, 0: all
  std::vector<int> lengths;   ///< of generated prompts: tokens, or another unit that a task names
  int shots = 0;              ///< examples before each question of multiple choice
  std::vector<int> requests;  ///< numbers of requests that are served together
  int answer = 0;             ///< fixed length of answers in tokens; 0: the task's own
  std::size_t memory = std::numeric_limits<std::size_t>::max();  ///< bytes that all requests together may be promised
  std::vector<int> depths;                                       ///< percent of the prompt before a hidden answer
  Split split = Split::test;                                     ///< of needles
  std::vector<std::string> kinds;                                ///< kinds of answers; empty: the usual five
  int chunk = 0;  ///< needles are placed at multiples of this number of tokens, and halfway between; 0: anywhere
  std::optional<PromptFormat> format;      ///< the user's format of generated prompts; not set: the task's own
  std::vector<std::uint32_t> seeds = {1};  ///< seeds of generated samples, each of which adds samples
  /// Called with "FILE line N: why" for a line that is not a sample; other lines are read.
  std::function<void(const std::string&)> on_bad_line;
  /// Called with the reason if tasks of a group are left out.
  std::function<void(const std::string&)> on_left_out;
};

/// A task as `winnow eval tasks` lists it.
struct TaskInfo {
  /// Options that not all tasks have, as bits.
  enum Option : unsigned {
    length = 1,
    seed = 2,
    memory = 4,
    max_prompt = 8,  ///< prompts are texts from files, without hidden answers that a cut could remove
  };

  std::string name;
  std::string source;  ///< paper or set
  std::string metric;
  std::string protocol;  ///< the part of the prompt that is the question
  std::function<Task(const Model& model, const TaskOptions& options)> make;
  std::string needs = {};    ///< path in the data folder; without it the task is left out of its group; empty: nothing
  std::string instead = {};  ///< path that serves in its place; empty: nothing
  unsigned options = 0;

  bool takes(Option option) const { return (options & option) != 0; }
};

const std::vector<TaskInfo>& list_tasks();

/// The task with this name, or the tasks of the group. Throws UsageError if there is none.
std::vector<const TaskInfo*> tasks_meant(const std::string& name);

/// Tasks by whether the data folder has the files they need.
struct AtHand {
  std::vector<const TaskInfo*> tasks;
  std::string lacking;  ///< a sentence about the others; empty: there are none
};

/// Throws InputError if a task lacks a file and the folder does not exist. `data` may be empty: the user gave none.
AtHand at_hand(std::span<const TaskInfo* const> tasks, const std::string& data);

/// Tasks by name, in the order of the names. A group's name (`longbench`) stands for all of its tasks, FILE.jsonl for
/// the samples in that file, ruler/NAME for those in the data folder's ruler/NAME.jsonl, if it exists;
/// documents/multi-doc/NAME and documents-fidelity/multi-doc/NAME likewise. Leaves out the tasks of a group that lack
/// their files. Throws UsageError for an unknown task, InputError for a missing file or a group without any task left.
std::vector<Task> make_tasks(std::span<const std::string> names, const Model& model, const TaskOptions& options);

/// A sample as a line of FILE.jsonl, whose id includes the task's name. Throws UsageError if the sample is not a
/// question with answers.
std::string line_of(const Sample& sample);

}  // namespace winnow::eval
