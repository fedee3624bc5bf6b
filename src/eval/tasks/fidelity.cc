// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "eval/tasks/all.h"
#include "eval/tasks/prompts.h"
#include "eval/tasks/texts.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr int kFidelityTokens = 7000;
constexpr int kFidelityAnswer = 64;
constexpr int kLongAnswer = 1024;
constexpr int kExcerptTokens = 2000;  // of a text that is continued or discussed
constexpr int kExcerpts = 3;          // of each text, by default

/// LongBench prompts of all kinds, `limit` from each file.
Task make_fidelity(const Model& model, const TaskOptions& options) {
  return fidelity_of(prompts_of(model, options, "fidelity", kFidelityTokens, prompt_files(options)), options);
}

/// A prompt that asks for a long answer.
struct AskedLengths {
  const char* kind;
  const char* folder;  ///< folder of the texts
  const char* before;  ///< before a part of a text
  const char* question;
};

constexpr AskedLengths kAsked[] = {
    {"story", "text", "Here is a part of a longer text.\n\n",
     "\n\nThe text breaks off here. Write on from there, at length and in its own style."},
    {"conversation", "needle", "Here is a part of an essay.\n\n",
     "\n\nTwo friends have read it and disagree about it. Write down their long conversation, turn by turn."},
};

/// Parts of texts, each followed by a question.
std::vector<Sample> excerpts_of(const Model& model, const TaskOptions& options, const AskedLengths& asked) {
  std::vector<Sample> out;
  const int count = options.limit > 0 ? options.limit : kExcerpts;
  const std::string text = read_folder(std::filesystem::path(options.data) / asked.folder);
  for (const int length : options.lengths.empty() ? std::vector{kExcerptTokens} : options.lengths) {
    for (int i = 0; i < count; ++i) {
      Sample sample;
      sample.id = fmt::format("{}-{}-{}", asked.kind, length, i);
      sample.prompt.text = asked.before + parts_of(model, spread_excerpt(text, i, count), std::array{length}).front();
      sample.prompt.question = asked.question;
      sample.labels["kind"] = asked.kind;
      out.push_back(std::move(sample));
    }
  }
  return out;
}

/// LongBench reports to summarize, in English and Chinese.
std::vector<Sample> summaries(const Model& model, const TaskOptions& options) {
  std::vector<std::string> files;
  for (const auto& file : prompt_files(options)) {
    const std::string name = std::filesystem::path(file).stem().string();
    if (name == "gov_report" || name == "multi_news" || name == "vcsum") files.push_back(file);
  }
  auto out = prompts_of(model, options, "", kFidelityTokens, files);
  for (auto& sample : out) {
    sample.prompt.format = PromptFormat::chat;
    sample.labels["kind"] = "summary";
  }
  return out;
}

Task make_long(const Model& model, const TaskOptions& options) {
  const ForcedAnswer answer{options.answer > 0 ? options.answer : kLongAnswer, ForcedAnswer::Tokens::drawn};
  auto samples = summaries(model, options);
  for (const auto& asked : kAsked) {
    for (auto& sample : excerpts_of(model, options, asked)) samples.push_back(std::move(sample));
  }
  Task out{{}, agreeing(answer), Against::full};
  for (const std::uint32_t seed : options.seeds) {
    for (auto sample : samples) {
      sample.task = "fidelity-long";
      sample.id += fmt::format("-answer-{}{}", answer.length, seed == 1 ? "" : fmt::format("-seed{}", seed));
      sample.references = {""};
      sample.max_tokens = answer.length;
      sample.seed = seed;
      if (answer.length != kLongAnswer) sample.labels["kind"] += fmt::format(", answer {}", answer.length);
      out.samples.push_back(std::move(sample));
    }
  }
  return out;
}

}  // namespace

Task fidelity_of(std::vector<Sample> samples, const TaskOptions& options) {
  ForcedAnswer answer;
  answer.length = options.answer > 0 ? options.answer : kFidelityAnswer;
  for (auto& sample : samples) {
    sample.max_tokens = answer.length;
    if (answer.length == kFidelityAnswer) continue;
    sample.id += fmt::format("-answer-{}", answer.length);
    sample.labels["kind"] = fmt::format("answer {}", answer.length);
  }
  return {std::move(samples), agreeing(answer), Against::full};
}

void add_fidelity(std::vector<TaskInfo>& to) {
  to.push_back({"fidelity", "distance to the full cache, LongBench prompts", "agreement, kl", "the last 64 tokens",
                make_fidelity, "longbench-mini", "", TaskInfo::max_prompt});
  to.push_back({"fidelity-long", "the same for long answers: summaries, stories, dialogues", "agreement, kl",
                "the last 64 tokens, or the request after a text", make_long, "longbench-mini", "",
                TaskInfo::length | TaskInfo::seed | TaskInfo::max_prompt});
}

}  // namespace winnow::eval
