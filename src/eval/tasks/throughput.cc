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

constexpr int kServedQuestion = 32;  // tokens at most
constexpr int kServedAnswer = 128;   // tokens

Sample served_prompt(const Model& model, const std::string& text, int length) {
  const int question = std::min(length / 2, kServedQuestion);
  const auto parts = parts_of(model, text, std::array{length - question, question});
  Sample out;
  out.task = "throughput";
  out.prompt.text = parts[0];
  out.prompt.question = parts[1];
  out.prompt.format = PromptFormat::raw;
  out.references = {""};
  out.labels = {{"length", std::to_string(length)}};
  return out;
}

Sample served(Sample sample, int requests, const TaskOptions& options) {
  const int answer = options.answer > 0 ? options.answer : kServedAnswer;
  sample.id = fmt::format("{}+{}x{}", sample.labels["length"], answer, requests);
  sample.max_tokens = answer;
  sample.requests = requests;
  sample.labels["requests"] = std::to_string(requests);
  sample.labels["kind"] = fmt::format("+ {} x {}", answer, requests);
  if (options.memory != std::numeric_limits<std::size_t>::max()) {
    sample.id += fmt::format("-{}", format_at_least(options.memory));
    sample.labels["kind"] += fmt::format(" in {}", format_bytes(options.memory));
  }
  return sample;
}

Task make_throughput(const Model& model, const TaskOptions& options) {
  const std::string text = read_folder(std::filesystem::path(options.data) / "needle");
  Task out;
  out.measure = serving(options.memory);
  out.sharing = Sharing::alone;
  for (const int length : options.lengths.empty() ? std::vector{1024} : options.lengths) {
    auto all = options.requests.empty() ? std::vector{16} : options.requests;
    if (options.limit > 0) all.resize(std::min(all.size(), as_size(options.limit)));
    const Sample prompt = served_prompt(model, text, length);
    for (const int requests : all) out.samples.push_back(served(prompt, requests, options));
  }
  return out;
}

}  // namespace

void add_throughput(std::vector<TaskInfo>& to) {
  to.push_back({"throughput", "--requests essays of --length tokens at once, --answer tokens each",
                "share of bytes saved", "the last 32 tokens", make_throughput, "", "",
                TaskInfo::length | TaskInfo::memory});
}

}  // namespace winnow::eval
