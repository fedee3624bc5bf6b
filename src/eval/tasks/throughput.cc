// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "base/as_size.h"
#include "base/format.h"
#include "eval/tasks/all.h"
#include "eval/tasks/texts.h"

namespace winnow::eval {

namespace {

constexpr int kQuestion = 32;  // tokens at most
constexpr int kAnswer = 128;   // tokens

bool is_limited(const TaskOptions& options) { return options.memory != std::numeric_limits<std::size_t>::max(); }

Sample sample_of(const Model& model, const std::string& text, int length, int requests, const TaskOptions& options) {
  const int answer = options.answer > 0 ? options.answer : kAnswer;
  const int question = std::min(length / 2, kQuestion);
  const auto parts = parts_of(model, text, std::array{length - question, question});
  const std::string memory = is_limited(options) ? format_at_least(options.memory) : "";
  Sample sample;
  sample.task = "throughput";
  sample.id = fmt::format("{}+{}x{}{}{}", length, answer, requests, memory.empty() ? "" : "-", memory);
  sample.prompt.text = parts[0];
  sample.prompt.question = parts[1];
  sample.prompt.format = PromptFormat::raw;
  sample.references = {""};
  sample.max_tokens = answer;
  sample.requests = requests;
  sample.labels = {{"length", std::to_string(length)},
                   {"requests", std::to_string(requests)},
                   {"kind", fmt::format("+ {} x {}{}{}", answer, requests, memory.empty() ? "" : " in ",
                                        memory.empty() ? "" : format_bytes(options.memory))}};
  return sample;
}

Task make(const Model& model, const TaskOptions& options) {
  const std::string text = read_folder(std::filesystem::path(options.data) / "needle");
  Task out;
  out.measure = serving(options.memory);
  out.sharing = Sharing::alone;
  for (const int length : options.lengths.empty() ? std::vector{1024} : options.lengths) {
    auto all = options.requests.empty() ? std::vector{16} : options.requests;
    if (options.limit > 0) all.resize(std::min(all.size(), as_size(options.limit)));
    for (const int requests : all) out.samples.push_back(sample_of(model, text, length, requests, options));
  }
  return out;
}

}  // namespace

void add_throughput(std::vector<TaskInfo>& to) {
  to.push_back({"throughput", "essays of --length tokens, --requests at once, answers of --answer tokens",
                "share of bytes saved", "the last 32 tokens", make});
}

}  // namespace winnow::eval
