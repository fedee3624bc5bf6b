// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/as_size.h"
#include "eval/tasks/all.h"
#include "eval/tasks/texts.h"

namespace winnow::eval {

namespace {

constexpr int kTimedQuestion = 32;  // tokens at most
constexpr int kTimes = 3;           // samples of each length

/// Prompts from niah's essays, each from another place.
Task make_efficiency(const Model& model, const TaskOptions& options) {
  const std::string text = read_folder(std::filesystem::path(options.data) / "needle");
  Task out;
  out.measure = timing();
  out.sharing = Sharing::alone;
  for (const int length : options.lengths.empty() ? std::vector{1024, 4096} : options.lengths) {
    const int question = std::min(length / 2, kTimedQuestion);
    for (int i = 0; i < (options.limit > 0 ? options.limit : kTimes); ++i) {
      const auto from = std::string_view(text).substr(std::min(text.find(' ', 1000 * as_size(i)), text.size()));
      const auto parts = parts_of(model, from, std::array{length - question, question});
      Sample sample;
      sample.task = "efficiency";
      sample.id = fmt::format("{}-{}", length, i);
      sample.prompt.text = parts[0];
      sample.prompt.question = parts[1];
      sample.prompt.format = PromptFormat::raw;
      sample.references = {""};
      sample.max_tokens = 0;  // decoded tokens may exceed the context: speed does not depend on positions
      sample.labels = {{"length", std::to_string(length)}};
      out.samples.push_back(std::move(sample));
    }
  }
  return out;
}

}  // namespace

void add_efficiency(std::vector<TaskInfo>& to) {
  to.push_back({"efficiency", "essays of --length tokens, one cache at a time", "share of bytes saved",
                "the last 32 tokens", make_efficiency, "needle", "", TaskInfo::length});
}

}  // namespace winnow::eval
