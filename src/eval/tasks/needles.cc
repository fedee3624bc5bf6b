// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>

#include "base/as_size.h"
#include "eval/metrics/metric.h"
#include "eval/tasks/all.h"
#include "eval/tasks/made_up.h"
#include "eval/tasks/needles/place.h"
#include "eval/tasks/needles/wording.h"
#include "eval/tasks/texts.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using needles::Borders;
using needles::Haystack;
using needles::Hidden;
using needles::Kind;
using needles::Shape;
using needles::Wanted;

constexpr int kMadeUpNeedles = 30;  // samples of each kind and length
constexpr int kLength = 2000;
constexpr int kBetween = 500;  // tokens of the answer before a late question

/// When the question is asked.
enum class Asked : std::uint8_t {
  first,
  late,  ///< after a long answer to another one
};

struct NeedlesTask {
  Shape shape;
  const char* name;
  const char* source;
  Asked asked = Asked::first;
};

constexpr NeedlesTask kNeedlesTasks[] = {
    {Shape::one, "needles/one", "a word, sentence, number, identifier or code hidden in essays"},
    {Shape::alike, "needles/alike", "the same, among three that look alike"},
    {Shape::hop, "needles/hop", "the same, asked for by a nickname that is given elsewhere"},
    {Shape::several, "needles/several", "three of these, all of them asked for"},
    {Shape::one, "needles/late", "one, asked for after a long answer (--answer) to another question", Asked::late},
};

/// Every other text, so that the splits share none.
Haystack haystack_of(const TaskOptions& options) {
  const auto folder = std::filesystem::path(options.data) / "needle";
  const auto files = text_files(folder);
  if (files.size() < 2)
    throw InputError(fmt::format("{}: the two splits need two texts, but there is only 1", folder.string()));
  std::string out;
  for (std::size_t i = options.split == Split::tuning ? 0 : 1; i < files.size(); i += 2)
    out += read_file(files[i]) + "\n\n";
  return Haystack(out);
}

int occurrences(const std::string& text, const std::string& part) {
  int out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

bool stand_once(const Hidden& hidden, const std::string& around) {
  std::string sentences;
  for (const auto& sentence : hidden.sentences) sentences += sentence + "\n";
  return std::all_of(hidden.answers.begin(), hidden.answers.end(), [&](const std::string& answer) {
    return occurrences(sentences, answer) == 1 && string_match(hidden.question + "\n" + around, answer) == 0;
  });
}

/// Parts that the samples of a task share.
struct Common {
  const Model& model;
  const TaskOptions& options;
  const NeedlesTask& task;
  Haystack haystack;
};

struct NeedlesCell {
  Kind kind;
  int length;
  std::optional<Borders::Place> place;
};

bool is_tuning(const Common& common) { return common.options.split == Split::tuning; }

/// "tuning, word, at a border"
std::string kind_label(const Common& common, const NeedlesCell& cell) {
  std::string out = is_tuning(common) ? "tuning, " : "";
  out += cell.kind.name;
  if (cell.place) out += *cell.place == Borders::Place::at ? ", at a border" : ", off borders";
  return out;
}

std::string id_of(const Common& common, const NeedlesCell& cell, int number) {
  std::string out = fmt::format("{}{}-{}", is_tuning(common) ? "tuning-" : "", cell.length, cell.kind.name);
  if (cell.place) out += fmt::format("-{}{}", *cell.place == Borders::Place::at ? "at" : "off", common.options.chunk);
  return fmt::format("{}-{}", out, number);
}

/// Depths of the needles: the first at the sample's depth, the others anywhere else.
std::vector<int> places_of_needles(const Hidden& hidden, int first, Random& random) {
  constexpr int kParts = 10;
  std::vector<int> out = {first};
  for (const int part : random.distinct(static_cast<int>(hidden.sentences.size()) - 1, kParts))
    out.push_back(100 / kParts * part + 50 / kParts);
  return out;
}

/// The place in the texts where a prompt begins, and what it hides.
struct Drawn {
  std::size_t begin;
  Hidden hidden;
};

/// Draws the same numbers for all borders.
Drawn draw(const Common& common, const NeedlesCell& cell, Random& random) {
  const auto& haystack = common.haystack;
  const auto before = needles::words_before(common.options.chunk);
  const auto rounds = 1 + before / haystack.size();  // so that there are enough words before the prompt
  const auto place = as_size(random.below(static_cast<int>(haystack.size())));
  Drawn out{haystack.sentence_from(rounds * haystack.size() + place), {}};
  std::string around;
  for (auto at = out.begin - before; at < out.begin + as_size(cell.length); ++at) around += haystack.word(at) + " ";
  do {
    out.hidden = needles::made_up(common.task.shape, cell.kind, common.options.split, random);
  } while (!stand_once(out.hidden, around));
  return out;
}

int tokens_between(const TaskOptions& options) { return options.answer > 0 ? options.answer : kBetween; }

/// Asks for a summary first.
void ask_late(const TaskOptions& options, Sample& sample) {
  const bool is_raw = sample.prompt.format == PromptFormat::raw;
  sample.later = sample.prompt.question;
  sample.prompt.question = is_raw ? "\n\nHere is a long summary of the text:" : "Write a long summary of the text.";
  sample.id += fmt::format("-after-{}", tokens_between(options));
  sample.labels["kind"] += fmt::format(", after {}", tokens_between(options));
}

Sample needles_sample(const Common& common, const NeedlesCell& cell, std::uint32_t seed, int number) {
  const auto& options = common.options;
  const auto depths = options.depths.empty() ? std::vector{10, 30, 50, 70, 90} : options.depths;
  const int depth = depths[as_size(number) % depths.size()];
  Random random(seed, fmt::format("{} {}{}", common.task.name, cell.kind.name, is_tuning(common) ? " tuning" : ""),
                number);
  const auto [begin, hidden] = draw(common, cell, random);
  Wanted wanted{cell.length, options.format.value_or(PromptFormat::chat), places_of_needles(hidden, depth, random), {}};
  if (cell.place) wanted.borders = {options.chunk, *cell.place};
  Sample out;
  out.task = common.task.name;
  out.id = id_of(common, cell, number);
  out.prompt = needles::hide(common.model, common.haystack, begin, hidden, wanted);
  if (wanted.format == PromptFormat::chat) out.begun = hidden.begun;
  out.references = hidden.answers;
  out.metric = Metric::contains_all;
  out.further = {Metric::longest_part};
  out.max_tokens = cell.kind.max_tokens * static_cast<int>(hidden.answers.size());
  out.labels = {
      {"length", std::to_string(cell.length)},
      {"depth", std::to_string(depth)},
      {"kind", kind_label(common, cell)},
      {"category", fmt::format("{} {}{}", common.task.name, cell.length, is_tuning(common) ? ", tuning" : "")}};
  if (common.task.asked == Asked::late) ask_late(options, out);
  return out;
}

std::vector<Kind> kinds_of(const TaskOptions& options) {
  const std::vector<std::string> usual = {"word", "sentence", "digits", "identifier", "code"};
  std::vector<Kind> out;
  for (const auto& name : options.kinds.empty() ? usual : options.kinds) out.push_back(needles::kind_of(name));
  return out;
}

Task make_needles(const NeedlesTask& task, const Model& model, const TaskOptions& options) {
  const Common common{model, options, task, haystack_of(options)};
  std::vector<std::optional<Borders::Place>> places = {std::nullopt};
  if (options.chunk > 0) places = {Borders::Place::at, Borders::Place::off};
  auto made = task_by_length(options, {kLength}, [&](int length) {
    std::vector<Sample> out;
    for (const auto& kind : kinds_of(options)) {
      for (const auto& place : places) {
        auto more = make_up(options, kMadeUpNeedles, [&](std::uint32_t seed, int number) {
          return needles_sample(common, {kind, length, place}, seed, number);
        });
        std::move(more.begin(), more.end(), std::back_inserter(out));
      }
    }
    return out;
  });
  if (task.asked == Asked::first) return made;
  made.measure = answering_later(tokens_between(options));
  made.against = Against::full;
  return made;
}

}  // namespace

void add_needles(std::vector<TaskInfo>& to) {
  for (const auto& task : kNeedlesTasks) {
    to.push_back(
        {task.name, task.source, name_of(Metric::contains_all),
         task.asked == Asked::late ? "the request for a summary after the essays" : "the question after the essays",
         [&task](const Model& model, const TaskOptions& options) { return make_needles(task, model, options); },
         "needle", "", TaskInfo::length | TaskInfo::seed});
  }
}

}  // namespace winnow::eval
