// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/jsonl.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text_lines.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

void check(const Sample& sample) {
  if (sample.prompt.text.empty() && sample.prompt.question.empty()) throw InputError("the prompt is empty");
  if (!sample.documents.empty() && sample.prompt.question.empty())
    throw InputError("there is no question about the documents");
  if (sample.references.empty()) throw InputError("there are no answers");
  if (sample.metric == Metric::classification && sample.classes.empty()) throw InputError("there are no classes");
}

using Read = std::function<Sample(const nlohmann::json& line, int number)>;

/// Collects the samples of one file.
class Collector {
 public:
  Collector(const std::string& path, const TaskOptions& options, const Read& read)
      : path_(path), options_(options), read_(read) {}

  bool is_enough() const { return options_.limit > 0 && static_cast<int>(samples_.size()) == options_.limit; }

  /// Adds a line or element.
  void add(const nlohmann::json& json, int number) {
    try {
      Sample sample = read_(json, number);
      check(sample);
      samples_.push_back(std::move(sample));
    } catch (const nlohmann::json::exception& error) {
      report(reason_of(error), number);
    } catch (const Error& error) {
      report(error.what(), number);
    }
  }

  void report(const std::string& why, int number) const {
    if (options_.on_bad_line) options_.on_bad_line(fmt::format("{} line {}: {}", path_, number, why));
  }

  std::vector<Sample> take(int lines) {
    if (samples_.empty()) throw InputError(fmt::format("{}: none of its {} lines is a sample", path_, lines));
    return std::move(samples_);
  }

 private:
  const std::string& path_;
  const TaskOptions& options_;
  const Read& read_;
  std::vector<Sample> samples_;
};

/// All return the number of lines.
int collect_lines(TextLines lines, Collector& to) {
  while (!to.is_enough() && lines.next()) {
    try {
      to.add(parse_json<nlohmann::json>(lines), lines.number());
    } catch (const JsonError& error) {
      to.report(error.what(), lines.number());
    }
  }
  return lines.number();
}

int collect_array(TextInput& file, Collector& to) {
  try {
    int number = 0;
    for (const auto& element : parse_json<nlohmann::json>(file.read_all())) {
      if (!to.is_enough()) to.add(element, ++number);
    }
    return number;
  } catch (const JsonError& error) {
    throw InputError(fmt::format("{}: {}", file.name(), error.what()));
  }
}

}  // namespace

std::vector<Sample> read_samples(const std::string& path, const TaskOptions& options, const Read& sample_of) {
  TextInput file(path);
  Collector collector(path, options, sample_of);
  const int lines =
      path.ends_with(".json") ? collect_array(file, collector) : collect_lines(TextLines(std::move(file)), collector);
  return collector.take(lines);
}

std::vector<std::string> documents_of(const nlohmann::json& line) {
  const auto& all = line.at("documents");
  if (!all.is_array()) throw InputError("\"documents\" is not a list of strings");
  if (all.empty()) throw InputError("there are no documents");
  std::vector<std::string> out;
  for (const auto& one : all) {
    const auto number = out.size() + 1;
    if (!one.is_string()) throw InputError(fmt::format("document {} of {} is not a string", number, all.size()));
    out.push_back(one.get<std::string>());
    if (out.back().empty()) throw InputError(fmt::format("document {} of {} is empty", number, all.size()));
  }
  return out;
}

Sample begin_sample(const nlohmann::json& line, int number, const std::string& task) {
  Sample out;
  out.task = task;
  out.id = std::to_string(number);
  if (line.contains("id")) out.id = line["id"].is_string() ? line["id"].get<std::string>() : line["id"].dump();
  out.prompt.text = line.value("text", "");
  return out;
}

}  // namespace winnow::eval
