// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr int kPromptTokens = 7000;
constexpr std::size_t kQuestionTokens = 64;  // the last ones of a prompt

/// A prompt as it stands, cut in the middle to so many tokens.
Sample sample_of(const Model& model, const std::string& prompt, const std::string& id) {
  auto tokens = model.tokenize(prompt);
  if (tokens.size() > kPromptTokens)
    tokens.erase(tokens.begin() + kPromptTokens / 2, tokens.end() - (kPromptTokens - kPromptTokens / 2));
  const auto question = tokens.size() - std::min(tokens.size() / 2, kQuestionTokens);
  Sample out;
  out.task = "fidelity";
  out.id = id;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    (i < question ? out.prompt.text : out.prompt.question) += model.piece(tokens[i]);
  out.prompt.format = PromptFormat::raw;
  out.references = {""};
  out.max_tokens = 64;
  return out;
}

/// LongBench prompts of all kinds, `limit` of each file.
Task make(const Model& model, const TaskOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.data) / "longbench-mini";
  if (!std::filesystem::is_directory(folder)) throw InputError(folder.string() + ": no such folder");
  Task out{{}, agreeing(), Against::full};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    const auto samples = read_samples(path.string(), options, [&](const nlohmann::json& line, int number) {
      return sample_of(model, line.at("prompt").get<std::string>(),
                       path.stem().string() + "-" + std::to_string(number));
    });
    out.samples.insert(out.samples.end(), samples.begin(), samples.end());
  }
  return out;
}

}  // namespace

void add_fidelity(std::vector<TaskInfo>& to) {
  to.push_back(
      {"fidelity", "distance to the full cache, LongBench prompts", "agreement, kl", "the last 64 tokens", make});
}

}  // namespace winnow::eval
