// SPDX-License-Identifier: Apache-2.0
#include "papers/plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "papers/made.h"
#include "papers/selection.h"
#include "winnow/error.h"

namespace winnow::papers {

namespace {

using Beyond = eval::PromptLimits::Beyond;
using eval::TaskInfo;

constexpr int kAnswer = 64;  // of the context, for the question and answer of a generated prompt

/// All of a few numbers, or the first and last of many.
std::string listed(const std::vector<int>& numbers) {
  constexpr std::size_t kFew = 8;
  return numbers.size() <= kFew ? fmt::format("{}", fmt::join(numbers, ", "))
                                : fmt::format("{} … {}", numbers.front(), numbers.back());
}

std::string lengths_in_words(const Measure& measure) {
  return measure.lengths.empty() ? "the tasks' default" : listed(measure.lengths);
}

/// True if generated prompts of a length fit into the context, with the measure's answers.
bool fits(const Measure& measure, int length, int context) {
  return length <= context - std::max(kAnswer, measure.answer);
}

std::vector<int> too_long(const Measure& measure, const std::vector<int>& lengths, int context) {
  std::vector<int> out;
  std::ranges::copy_if(lengths, std::back_inserter(out), [&](int length) { return !fits(measure, length, context); });
  return out;
}

/// Says what happens to prompts that do not fit.
std::string beyond_note(const Measure& measure, const std::vector<int>& lengths, int context, Beyond beyond) {
  const auto prompts = fmt::format("{}: prompts of {} tokens{}", measure.name, listed(lengths),
                                   measure.answer > 0 ? fmt::format(" with answers of {}", measure.answer) : "");
  return beyond == Beyond::allowed
             ? fmt::format("{} are read although they are longer than the model's context of {}", prompts, context)
             : fmt::format("{} are left out, because the model's context is {}", prompts, context);
}

/// The labels by which the recipe's cells and plots distinguish samples.
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

bool takes(const Measure& measure, TaskInfo::Option option) {
  return std::ranges::any_of(measure.tasks, [&](const TaskInfo* task) { return task->takes(option); });
}

/// True if --max-prompt cuts a task's prompts: the paper cuts them, or they are in files.
bool is_cut(const Measure& measure, const TaskInfo& task) {
  return measure.max_prompt > 0 || task.takes(TaskInfo::max_prompt);
}

class Planner {
 public:
  Planner(const Recipe& recipe, const Model& model, const eval::TaskOptions& tasks, const eval::PromptLimits& limits)
      : recipe_(recipe), model_(model), tasks_(tasks), limits_(limits), selection_(recipe), labels_(labels_of(recipe)) {
    const auto& info = model.info();
    plan_.sheet.recipe = recipe;
    plan_.sheet.model = info.name.empty() ? std::filesystem::path(info.path).stem().string() : info.name;
    plan_.sheet.model_hash = fmt::format("{:016x}", model.hash());
    plan_.sheet.rope = limits.rope;
    plan_.sheet.layers = info.n_layer - info.window_layers();
  }

  Plan all() {
    for (const auto& measure : recipe_.measures) add(measure);
    name_unused();
    return std::move(plan_);
  }

 private:
  void note(const std::string& sentence) { plan_.sheet.notes.push_back(sentence); }

  Beyond beyond(const Measure& measure) const {
    return measure.beyond == Beyond::allowed ? Beyond::allowed : limits_.beyond;
  }

  void add(const Measure& measure) {
    const auto asked = lengths(measure);
    const auto options = options_of(measure, asked);
    if (!options) return;
    const auto found = eval::at_hand(measure.tasks, options->data);
    if (!found.lacking.empty()) note(found.lacking);
    auto made = make(found.tasks, model_, *options);
    if (!made.empty()) keep_selected(measure, made);
    if (made.empty()) return;
    if (asked != measure.lengths)
      note(fmt::format("{}: prompts have the length {}, not {} as in the recipe", measure.name, listed(asked),
                       lengths_in_words(measure)));
    if (options->answer != measure.answer)
      note(fmt::format("{}: answers have {} tokens, not {} as in the recipe", measure.name, options->answer,
                       measure.answer));
    if (tasks_.limit > 0) note_limit(measure, made, count_without_limit(measure, found.tasks, *options));
    const int most = max_prompt(measure, made);
    for (auto& [info, task] : made) {
      eval::Evaluation evaluation;
      evaluation.methods = measure.methods;
      evaluation.protocols = measure.protocols;
      evaluation.limits = limits_;
      evaluation.limits.beyond = beyond(measure);
      evaluation.limits.max_prompt = is_cut(measure, *info) ? most : 0;
      write_down(measure, info->name, task, evaluation.limits.max_prompt);
      evaluation.tasks.push_back(std::move(task));
      plan_.evaluations.push_back(std::move(evaluation));
    }
  }

  /// The user's lengths if the measure has lengths.
  std::vector<int> lengths(const Measure& measure) {
    const bool is_users = !tasks_.lengths.empty() && takes(measure, TaskInfo::length);
    auto out = is_users ? tasks_.lengths : measure.lengths;
    const auto beyond_context = too_long(measure, out, limits_.context);
    if (!beyond_context.empty()) note(beyond_note(measure, beyond_context, limits_.context, beyond(measure)));
    return out;
  }

  /// Options for making the measure's tasks, with prompts of the remaining lengths. Empty if none remains.
  std::optional<eval::TaskOptions> options_of(const Measure& measure, std::vector<int> lengths) const {
    eval::TaskOptions options = tasks_;
    options.shots = measure.shots;
    if (measure.answer == 0 || tasks_.answer == 0) options.answer = measure.answer;
    options.depths = measure.depths;
    options.requests = measure.requests;
    if (!measure.seeds.empty()) options.seeds = measure.seeds;
    const bool has_lengths = !lengths.empty();
    if (beyond(measure) == Beyond::refused)
      std::erase_if(lengths, [&](int length) { return !fits(measure, length, limits_.context); });
    if (has_lengths && lengths.empty()) return {};
    options.lengths = std::move(lengths);
    return options;
  }

  /// Does not report lines that are not samples: the run does not read them.
  std::size_t count_without_limit(const Measure& measure, const std::vector<const TaskInfo*>& tasks,
                                  eval::TaskOptions options) const {
    options.limit = 0;
    options.on_bad_line = {};
    auto made = make(tasks, model_, options);
    leave_out_unselected(measure, made);
    return count_samples(made);
  }

  /// Removes the samples that no cell selects, and tasks without any others.
  void leave_out_unselected(const Measure& measure, std::vector<Made>& made) const {
    for (auto& one : made)
      std::erase_if(one.task.samples,
                    [&](const eval::Sample& sample) { return !selection_.has(measure, one.info->name, sample); });
    std::erase_if(made, [](const Made& one) { return one.task.samples.empty(); });
  }

  /// The same, with notes about it.
  void keep_selected(const Measure& measure, std::vector<Made>& made) {
    const auto before = values_of(made, "length");
    leave_out_unselected(measure, made);
    std::vector<std::string> lost;
    std::ranges::set_difference(before, values_of(made, "length"), std::back_inserter(lost));
    if (!lost.empty() && !tasks_.lengths.empty()) {
      note(fmt::format("{}: no row and column use prompts of the length {}; the recipe's is {}", measure.name,
                       fmt::join(lost, ", "), lengths_in_words(measure)));
    } else if (made.empty()) {
      note(fmt::format("{}: no row and column select any of its samples", measure.name));
    }
  }

  /// Notes how many samples --limit has left, and of what part of the recipe's values.
  void note_limit(const Measure& measure, const std::vector<Made>& made, std::size_t without_limit) {
    const auto samples = count_samples(made);
    auto out = samples > without_limit ? fmt::format("{}: --limit {} gives {} samples instead of {}", measure.name,
                                                     tasks_.limit, samples, without_limit)
                                       : fmt::format("{}: --limit {} leaves {} of {} samples", measure.name,
                                                     tasks_.limit, samples, without_limit);
    const auto tell = [&](const char* label, const std::vector<int>& all, const char* what) {
      const auto left = values_of(made, label).size();
      if (left < all.size()) out += fmt::format(", {} of {} {}", left, all.size(), what);
    };
    tell("depth", measure.depths, "depths");
    tell("requests", measure.requests, "numbers of requests");
    note(out);
  }

  /// The length to which prompts are cut: the paper's, the user's, or the context without the longest answer. 0: none
  /// is cut.
  int max_prompt(const Measure& measure, const std::vector<Made>& made) {
    const bool is_users = limits_.max_prompt > 0 && takes(measure, TaskInfo::max_prompt);
    if (measure.max_prompt == 0 && !is_users) return 0;
    int answer = 0;
    for (const auto& one : made) {
      for (const auto& sample : one.task.samples) answer = std::max(answer, sample.max_tokens);
    }
    const int most = measure.max_prompt > 0 ? measure.max_prompt : std::numeric_limits<int>::max();
    const int room = limits_.context - answer;
    int out = limits_.max_prompt > 0 ? std::min(most, limits_.max_prompt) : most;
    if (beyond(measure) == Beyond::refused) out = std::min(out, room);
    if (out < 1)
      throw InputError(fmt::format("the model's context of {} tokens has no room for a prompt and its answer of {}",
                                   limits_.context, answer));
    if (out < most) note(cut_note(measure, out));
    if (out > room)
      note(fmt::format("{}: prompts of up to {} tokens are read, although the model's context is {}", measure.name, out,
                       limits_.context));
    return out;
  }

  std::string cut_note(const Measure& measure, int tokens) const {
    const auto paper = measure.max_prompt > 0 ? fmt::format(", not to {} as in the paper", measure.max_prompt) : "";
    const auto why = tokens == limits_.max_prompt ? "as --max-prompt says"
                                                  : fmt::format("because the model's context is {}", limits_.context);
    return fmt::format("{}: longer prompts are cut to {} tokens{}, {}", measure.name, tokens, paper, why);
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

  void name_unused() {
    const eval::TaskOptions usual;
    const auto check = [&](const char* name, bool is_given, const auto& is_taken) {
      if (is_given && std::ranges::none_of(recipe_.measures, is_taken)) plan_.unused.emplace_back(name);
    };
    check("--length", !tasks_.lengths.empty(), [](const Measure& m) { return takes(m, TaskInfo::length); });
    check("--answer", tasks_.answer > 0, [](const Measure& m) { return m.answer > 0; });
    check("--max-prompt", limits_.max_prompt > 0,
          [](const Measure& m) { return m.max_prompt > 0 || takes(m, TaskInfo::max_prompt); });
    check("--memory", tasks_.memory != usual.memory, [](const Measure& m) { return takes(m, TaskInfo::memory); });
    check("--seed", tasks_.seeds != usual.seeds,
          [](const Measure& m) { return m.seeds.empty() && takes(m, TaskInfo::seed); });
  }

  const Recipe& recipe_;
  const Model& model_;
  const eval::TaskOptions& tasks_;
  const eval::PromptLimits& limits_;
  Selection selection_;
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
    const auto lacking = data.empty() ? "" : eval::at_hand(measure.tasks, data).lacking;
    if (!lacking.empty()) out.push_back(lacking);
    if (context == 0) continue;
    const auto beyond_context = too_long(measure, measure.lengths, context);
    if (!beyond_context.empty()) out.push_back(beyond_note(measure, beyond_context, context, measure.beyond));
    if (measure.max_prompt > context)
      out.push_back(
          fmt::format("{}: prompts are cut to fit into the model's context of {}, not to {} tokens as in the paper",
                      measure.name, context, measure.max_prompt));
  }
  return out;
}

}  // namespace winnow::papers
