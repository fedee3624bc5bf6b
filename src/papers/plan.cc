// SPDX-License-Identifier: Apache-2.0
#include "papers/plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "winnow/error.h"

namespace winnow::papers {

namespace {

using Beyond = eval::PromptLimits::Beyond;

constexpr int kAnswer = 64;  // tokens of the context that a question of a made-up prompt and its answer may need

/// All of a few numbers; of many the first and the last.
std::string listed(const std::vector<int>& numbers) {
  constexpr std::size_t kFew = 8;
  return numbers.size() <= kFew ? fmt::format("{}", fmt::join(numbers, ", "))
                                : fmt::format("{} … {}", numbers.front(), numbers.back());
}

/// Takes those out that do not fit into the context, and returns them.
std::vector<int> take_too_long(std::vector<int>& lengths, int context) {
  const auto too_long =
      std::stable_partition(lengths.begin(), lengths.end(), [&](int length) { return length <= context - kAnswer; });
  std::vector<int> out(too_long, lengths.end());
  lengths.erase(too_long, lengths.end());
  return out;
}

std::string too_long(const Measure& measure, const std::vector<int>& lengths, int context) {
  return fmt::format("{}: prompts of {} tokens are left out, since the model's context is {}", measure.name,
                     listed(lengths), context);
}

/// The labels by which the recipe's cells and plots tell samples apart.
std::set<std::string> labels_of(const Recipe& recipe) {
  std::set<std::string> out;
  for (const auto* lines : {&recipe.rows, &recipe.columns}) {
    for (const auto& line : *lines) {
      for (const auto& [name, value] : line.select.labels) out.insert(name);
    }
  }
  if (recipe.plot.kind == PlotKind::heat_map) out.insert({recipe.plot.x, recipe.plot.y});
  return out;
}

class Planner {
 public:
  Planner(const Recipe& recipe, const Model& model, const eval::TaskOptions& tasks, const eval::PromptLimits& limits)
      : recipe_(recipe), model_(model), tasks_(tasks), limits_(limits), labels_(labels_of(recipe)) {
    const auto& info = model.info();
    plan_.sheet.recipe = recipe;
    plan_.sheet.model = info.name.empty() ? std::filesystem::path(info.path).stem().string() : info.name;
    plan_.sheet.model_hash = fmt::format("{:016x}", model.hash());
    plan_.sheet.rope = limits.rope;
  }

  Plan all() {
    for (const auto& measure : recipe_.measures) add(measure);
    return std::move(plan_);
  }

 private:
  void note(const std::string& sentence) { plan_.sheet.notes.push_back(sentence); }

  void add(const Measure& measure) {
    eval::Evaluation evaluation;
    evaluation.methods = measure.methods;
    evaluation.protocols = measure.protocols;
    evaluation.limits = limits_;
    if (measure.beyond == Beyond::allowed) evaluation.limits.beyond = Beyond::allowed;
    std::vector<std::string> names;
    for (auto& [name, task] : tasks_of(measure)) {
      evaluation.tasks.push_back(std::move(task));
      names.push_back(name);
    }
    evaluation.limits.max_prompt = max_prompt(measure, evaluation.tasks);
    for (std::size_t i = 0; i < names.size(); ++i)
      write_down(measure, names[i], evaluation.tasks[i], evaluation.limits.max_prompt);
    if (!evaluation.tasks.empty()) plan_.evaluations.push_back(std::move(evaluation));
  }

  std::vector<std::pair<std::string, eval::Task>> tasks_of(const Measure& measure) {
    eval::TaskOptions options = tasks_;
    options.shots = measure.shots;
    options.answer = measure.answer;
    options.lengths = lengths(measure);
    options.depths = measure.depths;
    options.requests = measure.requests;
    if (!measure.seeds.empty()) options.seeds = measure.seeds;
    if (limits_.beyond == Beyond::refused && measure.beyond == Beyond::refused) {
      const auto left_out = take_too_long(options.lengths, limits_.context);
      if (!left_out.empty()) note(too_long(measure, left_out, limits_.context));
      if (!left_out.empty() && options.lengths.empty()) return {};
    }
    std::vector<std::pair<std::string, eval::Task>> out;
    for (const auto* task : measure.tasks) {
      const auto lacks = eval::lacking(*task, options.data);
      if (lacks.empty()) {
        out.emplace_back(task->name, task->make(model_, options));
      } else {
        note(fmt::format("{} is left out: {}", task->name, lacks));
      }
    }
    return out;
  }

  /// The user's, where the recipe has some.
  std::vector<int> lengths(const Measure& measure) {
    if (measure.lengths.empty() || tasks_.lengths.empty()) return measure.lengths;
    note(fmt::format("{}: prompts have {} tokens, not {} as in the recipe", measure.name, listed(tasks_.lengths),
                     listed(measure.lengths)));
    return tasks_.lengths;
  }

  /// What prompts are cut to: the paper's length, the user's, or what the context leaves beside the longest answer.
  int max_prompt(const Measure& measure, const std::vector<eval::Task>& tasks) {
    if (measure.max_prompt == 0) return 0;
    int answer = 0;
    for (const auto& task : tasks) {
      for (const auto& sample : task.samples) answer = std::max(answer, sample.max_tokens);
    }
    int out = measure.max_prompt;
    if (limits_.beyond == Beyond::refused) out = std::min(out, limits_.context - answer);
    if (limits_.max_prompt > 0) out = std::min(out, limits_.max_prompt);
    if (out < 1)
      throw InputError(fmt::format("the model's context of {} tokens has no room for an answer of {} and its prompt",
                                   limits_.context, answer));
    if (out < measure.max_prompt)
      note(fmt::format("{}: prompts are cut to {} tokens, not to {} as in the paper (the model's context is {})",
                       measure.name, out, measure.max_prompt, limits_.context));
    return out;
  }

  /// Adds a task's samples to the sheet.
  void write_down(const Measure& measure, const std::string& name, const eval::Task& task, int max_prompt) {
    std::map<std::pair<std::string, std::map<std::string, std::string>>, std::vector<std::string>> ids;
    for (const auto& sample : task.samples) {
      std::map<std::string, std::string> labels;
      for (const auto& [label, value] : sample.labels) {
        if (labels_.contains(label)) labels[label] = value;
      }
      ids[{sample.task, labels}].push_back(sample.id);
    }
    for (const auto& [what, samples] : ids)
      plan_.sheet.planned.push_back({measure.name, name, what.first, max_prompt, what.second, samples});
  }

  const Recipe& recipe_;
  const Model& model_;
  const eval::TaskOptions& tasks_;
  const eval::PromptLimits& limits_;
  std::set<std::string> labels_;
  Plan plan_;
};

}  // namespace

Plan plan(const Recipe& recipe, const Model& model, const eval::TaskOptions& tasks, const eval::PromptLimits& limits) {
  return Planner(recipe, model, tasks, limits).all();
}

std::vector<std::string> not_at_hand(const Recipe& recipe, const std::string& data, int context) {
  std::vector<std::string> out;
  for (const auto& measure : recipe.measures) {
    for (const auto* task : measure.tasks) {
      const auto lacks = data.empty() ? "" : eval::lacking(*task, data);
      if (!lacks.empty()) out.push_back(fmt::format("{}: {}", task->name, lacks));
    }
    if (context == 0 || measure.beyond == Beyond::allowed) continue;
    auto lengths = measure.lengths;
    const auto left_out = take_too_long(lengths, context);
    if (!left_out.empty()) out.push_back(too_long(measure, left_out, context));
    if (measure.max_prompt > context)
      out.push_back(fmt::format("{}: the paper's prompts have up to {} tokens, the model's context {}", measure.name,
                                measure.max_prompt, context));
  }
  return out;
}

}  // namespace winnow::papers
