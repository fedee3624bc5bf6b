// SPDX-License-Identifier: Apache-2.0
#include "papers/made.h"

namespace winnow::papers {

std::vector<Made> make(std::span<const eval::TaskInfo* const> tasks, const Model& model,
                       const eval::TaskOptions& options) {
  std::vector<Made> out;
  for (const auto* task : tasks) out.push_back({task, task->make(model, options)});
  return out;
}

std::size_t count_samples(const std::vector<Made>& made) {
  std::size_t out = 0;
  for (const auto& one : made) out += one.task.samples.size();
  return out;
}

std::set<std::string> values_of(const std::vector<Made>& made, const char* label) {
  std::set<std::string> out;
  for (const auto& one : made) {
    for (const auto& sample : one.task.samples) {
      if (const auto found = sample.labels.find(label); found != sample.labels.end()) out.insert(found->second);
    }
  }
  return out;
}

}  // namespace winnow::papers
