// SPDX-License-Identifier: Apache-2.0
#include "papers/join.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace winnow::papers {

namespace {

using eval::Evaluation;
using eval::Sample;
using eval::Task;

/// Compares the members of a sample that depend on a task's options. The other members depend only on the task's name.
bool same_sample(const Sample& a, const Sample& b) {
  return a.task == b.task && a.id == b.id && a.prompt.text == b.prompt.text && a.prompt.format == b.prompt.format &&
         a.documents == b.documents && a.labels == b.labels && a.max_tokens == b.max_tokens &&
         a.requests == b.requests && a.seed == b.seed;
}

bool same_tasks(const std::vector<Task>& a, const std::vector<Task>& b) {
  return std::ranges::equal(
      a, b, [](const Task& x, const Task& y) { return std::ranges::equal(x.samples, y.samples, same_sample); });
}

bool alike(const Evaluation& a, const Evaluation& b) { return a.protocols == b.protocols && a.limits == b.limits; }

void add_methods(const std::vector<eval::Method>& methods, std::vector<eval::Method>& to) {
  for (const auto& method : methods) {
    if (std::ranges::find(to, method) == to.end()) to.push_back(method);
  }
}

}  // namespace

std::vector<Evaluation> joined(std::vector<Plan> plans) {
  std::vector<Evaluation> one_each;
  for (auto& plan : plans) {
    for (auto& evaluation : plan.evaluations) {
      const auto same = std::ranges::find_if(one_each, [&](const Evaluation& other) {
        return alike(evaluation, other) && same_tasks(evaluation.tasks, other.tasks);
      });
      if (same == one_each.end()) {
        one_each.push_back(std::move(evaluation));
      } else {
        add_methods(evaluation.methods, same->methods);
      }
    }
  }
  std::vector<Evaluation> out;
  for (auto& one : one_each) {
    if (!out.empty() && alike(out.back(), one) && out.back().methods == one.methods) {
      // A single evaluation has one progress and one set of shards.
      std::ranges::move(one.tasks, std::back_inserter(out.back().tasks));
    } else {
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace winnow::papers
