// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "eval/tasks/made_up.h"
#include "eval/tasks/ruler/prompts.h"
#include "eval/tokenized_sample.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using ruler::Made;
using ruler::Maker;
using ruler::Type;

constexpr int kMadeUpRuler = 50;  // samples of each length; the authors make 500

const std::vector<Type>& types() {
  static const auto out = [] {
    std::vector<Type> all;
    ruler::add_needles(all);
    ruler::add_chains(all);
    ruler::add_words(all);
    ruler::add_qa(all);
    return all;
  }();
  return out;
}

std::string trimmed(const std::string& text) {
  const auto begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

/// With a chat template, the message ends with the question, and the answer begins with the words that otherwise end
/// RULER's prompt.
Sample ruler_sample(const Type& type, const std::string& task, const std::string& id, const Made& made,
                    PromptFormat format) {
  Sample out;
  out.task = task;
  out.id = id;
  const bool is_chat = format == PromptFormat::chat;
  out.prompt.text = made.text;
  out.prompt.question = is_chat ? trimmed(made.question) : made.question + made.begun;
  out.prompt.format = format;
  if (is_chat) {
    out.begun = trimmed(made.begun);
    out.labels["kind"] = "chat";
  }
  out.references = made.answers;
  out.metric = type.metric;
  out.max_tokens = type.max_tokens;
  return out;
}

/// Makes prompts of the greatest length allowed.
class Filler {
 public:
  Filler(const Model& model, const Type& type, const Maker& maker, PromptFormat format, int length)
      : model_(model),
        type_(type),
        maker_(maker),
        format_(format),
        room_(length - type.max_tokens),
        units_(type.least) {}

  /// Throws InputError if even the shortest prompt is too long. The search begins at the previous prompt's result.
  Made fill(const Random& random, int number) {
    int low = type_.least;
    int high = room_;  // a unit has at least one token
    for (int at = units_; high - low > 1;) {
      const int found = tokens(maker_(at, random, number));
      (found <= room_ ? low : high) = at;
      // The number of units if the prompt's length were proportional to it.
      const auto next = static_cast<std::int64_t>(at) * room_ / std::max(1, found);
      at = static_cast<int>(std::max<std::int64_t>(low + 1, std::min<std::int64_t>(next, high - 1)));
    }
    units_ = low;
    Made out = maker_(units_, random, number);
    if (const int least = tokens(out); least > room_)
      throw InputError(
          fmt::format("ruler/{}: the shortest prompt and its answer have {} tokens, more than --length allows ({})",
                      type_.name, least + type_.max_tokens, room_ + type_.max_tokens));
    return out;
  }

 private:
  int tokens(const Made& made) const {
    return tokenized(model_, ruler_sample(type_, "", "", made, format_), Protocol::aware, 0).tokens();
  }

  const Model& model_;
  const Type& type_;
  const Maker& maker_;
  PromptFormat format_;
  int room_;
  int units_;
};

Task make_ruler(const Type& type, const Model& model, const TaskOptions& options) {
  Task out;
  out.measure = answering();
  const auto format = options.format.value_or(PromptFormat::raw);
  const std::string task = fmt::format("ruler/{}", type.name);
  for (const int length : options.lengths.empty() ? std::vector{4096} : options.lengths) {
    const Maker maker = type.maker(options, length);
    Filler filler(model, type, maker, format, length);
    auto more = make_up(options, kMadeUpRuler, [&](std::uint32_t seed, int number) {
      auto sample = ruler_sample(type, task, fmt::format("{}-{}", length, number),
                                 filler.fill(Random(seed, task, number), number), format);
      sample.labels["length"] = std::to_string(length);
      sample.labels["category"] = fmt::format("RULER {}{}", length, format == PromptFormat::chat ? ", chat" : "");
      return sample;
    });
    std::move(more.begin(), more.end(), std::back_inserter(out.samples));
  }
  return out;
}

/// The type that a file's name begins with.
const Type& type_of_file(const std::string& stem) {
  const auto found =
      std::find_if(types().begin(), types().end(), [&](const Type& type) { return stem.starts_with(type.name); });
  if (found == types().end())
    throw InputError(fmt::format("ruler/{}.jsonl: the name must begin with one of RULER's 13 types", stem));
  return *found;
}

/// Parses {"input", "outputs", and maybe "answer_prefix"}: the question is the input's last line. Without
/// "answer_prefix", the input contains the prefix.
Made made_by_authors(const nlohmann::json& line) {
  const auto input = line.at("input").get<std::string>();
  const auto cut = std::min(input.rfind('\n'), input.size());
  return {input.substr(0, cut), input.substr(cut), line.value("answer_prefix", ""),
          line.at("outputs").get<std::vector<std::string>>()};
}

}  // namespace

bool is_ruler_file(const std::string& name, const TaskOptions& options) {
  return name.starts_with("ruler/") && std::filesystem::exists(std::filesystem::path(options.data) / (name + ".jsonl"));
}

Task ruler_file(const std::string& name, const TaskOptions& options) {
  const auto path = std::filesystem::path(options.data) / (name + ".jsonl");
  const Type& type = type_of_file(path.stem().string());
  return {read_samples(path.string(), options,
                       [&](const nlohmann::json& line, int number) {
                         return ruler_sample(type, name, std::to_string(line.value("index", number)),
                                             made_by_authors(line), options.format.value_or(PromptFormat::raw));
                       }),
          answering()};
}

void add_ruler(std::vector<TaskInfo>& to) {
  for (const auto& type : types()) {
    to.push_back({fmt::format("ruler/{}", type.name), "RULER, generated with --length tokens", name_of(type.metric),
                  "the line with the question, and the beginning of the answer",
                  [&type](const Model& model, const TaskOptions& options) { return make_ruler(type, model, options); },
                  type.needs, "", TaskInfo::length | TaskInfo::seed});
  }
}

}  // namespace winnow::eval
