// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/prompts.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "eval/tasks/jsonl.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr std::size_t kQuestionTokens = 64;  // the last ones of a prompt

/// A prompt, cut in the middle to at most `most` tokens.
PromptText cut(const Model& model, const std::string& prompt, int most) {
  auto tokens = model.vocab().tokenize(prompt);
  if (tokens.size() > as_size(most)) tokens.erase(tokens.begin() + most / 2, tokens.end() - (most - most / 2));
  const auto question = tokens.size() - std::min(tokens.size() / 2, kQuestionTokens);
  PromptText out;
  out.format = PromptFormat::raw;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    (i < question ? out.text : out.question) += model.vocab().text(tokens[i]);
  return out;
}

}  // namespace

std::vector<std::string> prompt_files(const TaskOptions& options) {
  const auto folder = std::filesystem::path(options.data) / "longbench-mini";
  if (!std::filesystem::is_directory(folder)) throw InputError(folder.string() + ": no such folder");
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Sample> prompts_of(const Model& model, const TaskOptions& options, const std::string& task, int tokens,
                               std::span<const std::string> files) {
  std::vector<Sample> out;
  for (const auto& path : files) {
    const std::string name = std::filesystem::path(path).stem().string();
    const auto samples = read_samples(path, options, [&](const nlohmann::json& line, int number) {
      Sample sample;
      sample.task = task;
      sample.id = name + "-" + std::to_string(number);
      sample.prompt = cut(model, line.at("prompt").get<std::string>(), tokens);
      sample.references = {""};
      sample.labels["file"] = name;
      return sample;
    });
    out.insert(out.end(), samples.begin(), samples.end());
  }
  return out;
}

}  // namespace winnow::eval
