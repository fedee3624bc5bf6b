// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using Json = nlohmann::json;

/// A multiple-choice question in the format of the data sets.
struct Instruction {
  std::string stem;
  std::vector<std::string> options;
  std::size_t right = 0;
};

/// The text between two marks. Throws InputError.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto b = text.find(begin);
  const auto e = b == std::string::npos ? b : text.find(end, b + begin.size());
  if (e == std::string::npos) throw InputError(fmt::format("there is no \"{}\" with \"{}\" after it", begin, end));
  const auto out = text.substr(b + begin.size(), e - b - begin.size());
  return out.substr(0, out.find_last_not_of(" \n") + 1);
}

/// Parses {"instruction": "… LEAD STEM
/// Answer1: … Answer2: … Answer format: …", "answer": "answer2"}, or with Option in place of Answer.
Instruction of_instruction(const Json& line, const std::string& lead, const std::string& label) {
  const auto text = line.at("instruction").get<std::string>();
  const auto answer = line.at("answer").get<std::string>();
  Instruction out;
  out.stem = between(text, lead, "\n\n" + label + "1: ");
  const auto mark = [&](std::size_t number) { return fmt::format("{}{}: ", label, number); };
  for (std::size_t i = 1; text.find(mark(i)) != std::string::npos; ++i) {
    const bool is_last = text.find(mark(i + 1)) == std::string::npos;
    out.options.push_back(between(text, mark(i), is_last ? "Answer format:" : mark(i + 1)));
  }
  out.right = as_size(answer.back() - '1');
  if (out.right >= out.options.size())
    throw InputError(fmt::format("the answer is {}, but there are {} choices", answer, out.options.size()));
  return out;
}

/// Puts the cue after the compressed cache, so that all scored tokens are read with it.
Sample with_cue(const Instruction& asked) {
  Sample out;
  out.prompt.question = asked.stem;
  for (const auto& option : asked.options) out.choices.push_back({option, "\nAnswer:", " " + option});
  out.references = {asked.options[asked.right]};
  return out;
}

Sample science(const Json& line) {
  Instruction asked = of_instruction(line, "to the question: ", "Answer");
  asked.stem = "Question: " + asked.stem;
  return with_cue(asked);
}

/// Accepts true, as in SuperGLUE's files, and "true", as in copies of them.
Sample wic(const Json& line) {
  const auto& label = line.at("label");
  const auto text = [&](const char* key) { return line.at(key).get<std::string>(); };
  return with_cue({fmt::format("Sentence 1: {}\nSentence 2: {}\nQuestion: Is the word '{}' used in the same way in the "
                               "two sentences above?",
                               text("sentence1"), text("sentence2"), text("word")),
                   {"no", "yes"},
                   label == true || label == "true" ? 1U : 0U});
}

/// Scores the text after the blank, with each option filled in.
Sample winogrande(const Json& line) {
  const Instruction asked = of_instruction(line, "given sentence: ", "Option");
  const auto blank = asked.stem.find('_');
  if (blank == std::string::npos) throw InputError("the sentence has no blank");
  Sample out;
  out.prompt.question = "Sentence:";
  if (blank > 0)
    out.prompt.question += " " + asked.stem.substr(0, blank - 1);  // the space before the blank belongs to the option
  for (const auto& option : asked.options) out.choices.push_back({option, " " + option, asked.stem.substr(blank + 1)});
  out.references = {asked.options[asked.right]};
  return out;
}

struct ShortSet {
  const char* name;
  const char* file;
  const char* source;
  Sample (*read)(const Json&);
  Likelihood likelihood;
};

constexpr ShortSet kSets[] = {
    {"short/arc-easy", "arc-easy.json", "ARC-Easy, zero-shot or with --shots", science, Likelihood::per_token},
    {"short/openbookqa", "openbookqa.json", "OpenBookQA, likewise", science, Likelihood::per_token},
    {"short/wic", "wic.jsonl", "WiC, likewise", wic, Likelihood::sum},
    {"short/winogrande", "winogrande.json", "WinoGrande, likewise", winogrande, Likelihood::sum},
};

/// A question with its right answer.
std::string example(const Sample& sample) {
  const auto right = std::find_if(sample.choices.begin(), sample.choices.end(),
                                  [&](const Choice& c) { return c.name == sample.references.front(); });
  return sample.prompt.question + right->given + right->scored + "\n\n";
}

Task make_short(const ShortSet& set, const TaskOptions& options) {
  TaskOptions with_shots = options;
  if (options.limit > 0) with_shots.limit += options.shots;
  const auto path = std::filesystem::path(options.data) / "short" / set.file;
  auto samples = read_samples(path.string(), with_shots, [&](const Json& line, int number) {
    Sample out = set.read(line);
    out.id = std::to_string(number);
    return out;
  });
  if (static_cast<int>(samples.size()) <= options.shots)
    throw InputError(fmt::format("{} has {} samples: --shots {} must be less, because examples are taken from them",
                                 path.string(), samples.size(), options.shots));
  std::string shots;
  for (int i = 0; i < options.shots; ++i) shots += example(samples[i]);
  samples.erase(samples.begin(), samples.begin() + options.shots);
  for (auto& sample : samples) {
    sample.task = options.shots > 0 ? fmt::format("{}/{}-shot", set.name, options.shots) : set.name;
    sample.prompt.text = shots;
    sample.prompt.format = PromptFormat::raw;
    sample.max_tokens = 1;
    sample.labels = {{"category", fmt::format("short, {}-shot", options.shots)}};
  }
  return {std::move(samples), choosing(set.likelihood)};
}

}  // namespace

void add_short(std::vector<TaskInfo>& to) {
  for (const auto& set : kSets) {
    to.push_back({set.name, set.source, set.likelihood == Likelihood::sum ? "likelihood" : "likelihood per token",
                  "the sample itself, after the examples",
                  [&set](const Model&, const TaskOptions& options) { return make_short(set, options); },
                  fmt::format("short/{}", set.file), "", TaskInfo::max_prompt});
  }
}

}  // namespace winnow::eval
