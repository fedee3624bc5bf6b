// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"

namespace winnow::eval {

namespace {

/// {"text", "documents", "question" or "input", "outputs", "metric", "max_tokens", "id"}: text and outputs as L-Eval
/// has them.
Sample sample_of(const nlohmann::json& line, int number, const std::string& task) {
  Sample out = begin_sample(line, number, task);
  if (line.contains("documents")) out.documents = documents_of(line);
  out.prompt.question = line.contains("question") ? line["question"].get<std::string>() : line.value("input", "");
  out.references = line.at("outputs").get<std::vector<std::string>>();
  if (line.contains("classes")) out.classes = line["classes"].get<std::vector<std::string>>();
  out.metric = parse_metric(line.value("metric", "qa_f1"));
  out.max_tokens = line.value("max_tokens", 64);
  return out;
}

}  // namespace

Task custom_task(const std::string& path, const TaskOptions& options) {
  return {read_samples(path, options,
                       [&](const nlohmann::json& line, int number) { return sample_of(line, number, path); }),
          answering()};
}

}  // namespace winnow::eval
