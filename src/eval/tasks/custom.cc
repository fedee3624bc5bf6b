// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr const char* kRawFormat = "raw";
constexpr const char* kFirstLine = "first_line";

/// True if a field has the value `other`. Throws InputError for a value that is neither.
bool is_set(const nlohmann::json& line, const char* field, const std::string& usual, const std::string& other) {
  const auto text = line.value(field, usual);
  if (text != usual && text != other)
    throw InputError(fmt::format("\"{}\" is {}: give {} or {}", field, text, usual, other));
  return text == other;
}

/// Parses {"text", "documents", "question" or "input", "answer_prefix", "outputs", "metric", "max_tokens", "id", …}, as
/// described in docs/tasks.md; text and outputs as in L-Eval.
Sample custom_sample(const nlohmann::json& line, int number, const std::string& task) {
  Sample out = begin_sample(line, number, task);
  if (line.contains("documents")) out.documents = documents_of(line);
  out.prompt.question = line.contains("question") ? line["question"].get<std::string>() : line.value("input", "");
  if (is_set(line, "format", "chat", kRawFormat)) out.prompt.format = PromptFormat::raw;
  out.begun = line.value("answer_prefix", "");
  out.labels = line.value("labels", out.labels);
  out.references = line.at("outputs").get<std::vector<std::string>>();
  if (line.contains("classes")) out.classes = line["classes"].get<std::vector<std::string>>();
  out.metric = parse_metric(line.value("metric", "qa_f1"));
  for (const auto& metric : line.value("further", std::vector<std::string>()))
    out.further.push_back(parse_metric(metric));
  if (is_set(line, "scored", "whole", kFirstLine)) out.scored = ScoredText::first_line;
  out.max_tokens = line.value("max_tokens", 64);
  return out;
}

}  // namespace

Task custom_task(const std::string& path, const TaskOptions& options) {
  return {read_samples(path, options,
                       [&](const nlohmann::json& line, int number) { return custom_sample(line, number, path); }),
          answering()};
}

std::string line_of(const Sample& sample) {
  const bool asks = sample.choices.empty() && !sample.prompt.question.empty() && sample.later.empty();
  if (!asks || std::ranges::all_of(sample.references, &std::string::empty))
    throw UsageError(fmt::format("{} {} cannot be printed as a line of JSON: it is not a question about a text",
                                 sample.task, sample.id));
  nlohmann::ordered_json line = {{"id", sample.task + "/" + sample.id}, {"text", sample.prompt.text}};
  if (!sample.documents.empty()) line["documents"] = sample.documents;
  line["question"] = sample.prompt.question;
  if (!sample.begun.empty()) line["answer_prefix"] = sample.begun;
  line["outputs"] = sample.references;
  line["metric"] = name_of(sample.metric);
  for (const auto metric : sample.further) line["further"].push_back(name_of(metric));
  if (sample.scored == ScoredText::first_line) line["scored"] = kFirstLine;
  if (!sample.classes.empty()) line["classes"] = sample.classes;
  line["max_tokens"] = sample.max_tokens;
  if (sample.prompt.format == PromptFormat::raw) line["format"] = kRawFormat;
  if (!sample.labels.empty()) line["labels"] = sample.labels;
  // A cut may have left incomplete UTF-8.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace winnow::eval
