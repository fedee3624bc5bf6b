// SPDX-License-Identifier: Apache-2.0
#include "papers/join.h"

#include <algorithm>

namespace winnow::papers {

namespace {

using eval::Evaluation;
using eval::Sample;
using eval::Task;

/// What a task leaves to its options: texts, labels, the length of answers, how many requests come at once. All the
/// rest follows from the task's name.
bool same_sample(const Sample& a, const Sample& b) {
  return a.task == b.task && a.id == b.id && a.prompt.text == b.prompt.text && a.prompt.format == b.prompt.format &&
         a.documents == b.documents && a.labels == b.labels && a.max_tokens == b.max_tokens &&
         a.requests == b.requests && a.seed == b.seed;
}

bool same_task(const Task& a, const Task& b) { return std::ranges::equal(a.samples, b.samples, same_sample); }

bool alike(const Evaluation& a, const Evaluation& b) { return a.protocols == b.protocols && a.limits == b.limits; }

void add_methods(const std::vector<eval::Method>& methods, std::vector<eval::Method>& to) {
  for (const auto& method : methods) {
    if (std::ranges::find(to, method) == to.end()) to.push_back(method);
  }
}

/// One task each.
std::vector<Evaluation> by_task(const std::vector<Plan>& plans) {
  std::vector<Evaluation> out;
  for (const auto& plan : plans) {
    for (const auto& evaluation : plan.evaluations) {
      for (const auto& task : evaluation.tasks) {
        const auto same = std::ranges::find_if(out, [&](const Evaluation& other) {
          return alike(evaluation, other) && same_task(task, other.tasks.front());
        });
        auto& to = same != out.end() ? *same : out.emplace_back(evaluation);
        to.tasks = {task};
        add_methods(evaluation.methods, to.methods);
      }
    }
  }
  return out;
}

}  // namespace

std::vector<Evaluation> joined(const std::vector<Plan>& plans) {
  std::vector<Evaluation> out;
  for (auto& one : by_task(plans)) {
    if (!out.empty() && alike(out.back(), one) && out.back().methods == one.methods) {
      out.back().tasks.push_back(std::move(one.tasks.front()));  // progress and shards are of as much as possible
    } else {
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace winnow::papers
