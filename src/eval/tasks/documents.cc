// SPDX-License-Identifier: Apache-2.0
// Questions over several documents: LongBench's prompts, split into their passages, and files of such questions.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "eval/tasks/longbench.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using Samples = std::vector<Sample>;

constexpr const char* kAnswered = "documents/";
constexpr const char* kCompared = "documents-fidelity/";
constexpr const char* kFiles = "multi-doc";

/// A data set of LongBench whose context consists of passages. Each one's first line has its number between two words.
struct Passages {
  const char* name;
  const char* before;
  const char* after;
  std::vector<Metric> further = {};

  std::string first_line(int number) const { return fmt::format("{}{}{}", before, number, after); }
};

const std::vector<Passages>& all_passages() {
  static const std::vector<Passages> out = {{"hotpotqa", "Passage ", ":\n"},
                                            {"2wikimqa", "Passage ", ":\n"},
                                            {"musique", "Passage ", ":\n"},
                                            {"dureader", "文章", "\n", {Metric::qa_f1_zh}}};  // F1 in SamKV's paper
  return out;
}

/// Offsets of the passages in a text, in the order of their numbers.
std::vector<std::size_t> begins_of(const Passages& passages, const std::string& text) {
  std::vector<std::size_t> out;
  // The first one may follow the template's words in the same line.
  for (auto at = text.find(passages.first_line(1)); at != std::string::npos;) {
    out.push_back(at);
    const auto next = text.find(fmt::format("\n{}", passages.first_line(static_cast<int>(out.size()) + 1)), at);
    at = next == std::string::npos ? next : next + 1;
  }
  return out;
}

/// Moves the passages of a sample's text to its documents. The text before them stays.
void split_documents(const Passages& passages, Sample& sample) {
  std::string& text = sample.prompt.text;
  const auto begins = begins_of(passages, text);
  if (begins.empty())
    throw InputError(fmt::format("the prompt has no \"{}1\", where its passages begin", passages.before));
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto end = i + 1 < begins.size() ? begins[i + 1] : text.size();
    sample.documents.push_back(text.substr(begins[i], end - begins[i]));
  }
  text.resize(begins.front());
}

Samples of_longbench(const Passages& passages, const TaskOptions& options) {
  return longbench_samples(passages.name, options, [&](Sample& sample) {
    split_documents(passages, sample);
    sample.labels.clear();  // with a category, these tasks would count in the mean of LongBench's own
    sample.further = passages.further;
  });
}

/// {"documents", "question", "answers", "metric", "max_tokens", "id"}.
Sample documents_sample(const nlohmann::json& line, int number, const std::string& task) {
  Sample out = begin_sample(line, number, task);
  for (const auto& document : documents_of(line)) out.documents.push_back(document + "\n\n");
  out.prompt.question = fmt::format("Question: {}\nAnswer:", line.at("question").get<std::string>());
  out.references = line.at("answers").get<std::vector<std::string>>();
  out.metric = parse_metric(line.value("metric", "qa_f1"));
  out.max_tokens = line.value("max_tokens", 32);
  out.scored = ScoredText::first_line;  // models add questions of their own after it
  return out;
}

Samples of_file(const std::filesystem::path& path, const TaskOptions& options) {
  const auto task = fmt::format("{}/{}", kFiles, path.stem().string());
  return read_samples(path.string(), options,
                      [&](const nlohmann::json& line, int number) { return documents_sample(line, number, task); });
}

/// Samples of all files of the data folder.
Samples of_files(const TaskOptions& options) {
  const auto folder = std::filesystem::path(options.data) / kFiles;
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  if (files.empty()) throw InputError(folder.string() + ": no folder with .jsonl files");
  std::sort(files.begin(), files.end());
  Samples out;
  for (const auto& path : files) {
    auto samples = of_file(path, options);
    std::move(samples.begin(), samples.end(), std::back_inserter(out));
  }
  return out;
}

Samples in_group(Samples samples, const char* group) {
  for (auto& sample : samples) sample.task.insert(0, group);
  return samples;
}

Task answered(Samples samples) { return {in_group(std::move(samples), kAnswered), answering()}; }

/// Compares with the joint prefill, which is the full cache of the whole prompt.
Task compared(Samples samples, const TaskOptions& options) {
  return fidelity_of(in_group(std::move(samples), kCompared), options);
}

/// A set of samples, for two tasks.
struct DocumentsSet {
  std::string name;
  std::string source;
  std::string metric;
  std::string needs;
  std::string instead;
  std::function<Samples(const TaskOptions&)> samples;
};

std::vector<DocumentsSet> all_sets() {
  std::vector<DocumentsSet> out;
  for (const auto& passages : all_passages()) {
    out.push_back({passages.name, fmt::format("LongBench, {}'s passages", passages.name),
                   name_of(longbench_metric(passages.name)), fmt::format("longbench/{}.jsonl", passages.name),
                   fmt::format("longbench-mini/{}.jsonl", passages.name),
                   [&passages](const TaskOptions& options) { return of_longbench(passages, options); }});
  }
  out.push_back({kFiles, "questions over documents in multi-doc/", "the line's, or qa_f1", kFiles, "", of_files});
  return out;
}

/// The file that a name of one of the two groups means; empty for other names.
std::optional<std::filesystem::path> file_of(const std::string& name, const TaskOptions& options) {
  for (const std::string group : {kAnswered, kCompared}) {
    if (name.starts_with(group + kFiles + "/"))
      return std::filesystem::path(options.data) / (name.substr(group.size()) + ".jsonl");
  }
  return {};
}

}  // namespace

void add_documents(std::vector<TaskInfo>& to) {
  const char* const question = "the text after the documents";
  for (const auto& set : all_sets())
    to.push_back(
        {kAnswered + set.name, set.source, set.metric, question,
         [samples = set.samples](const Model&, const TaskOptions& options) { return answered(samples(options)); },
         set.needs, set.instead, TaskInfo::max_prompt});
  for (const auto& set : all_sets())
    to.push_back({kCompared + set.name, "distance to reading them together, " + set.name, "agreement, kl", question,
                  [samples = set.samples](const Model&, const TaskOptions& options) {
                    return compared(samples(options), options);
                  },
                  set.needs, set.instead, TaskInfo::max_prompt});
}

bool is_documents_file(const std::string& name, const TaskOptions& options) {
  const auto file = file_of(name, options);
  return file && std::filesystem::exists(*file);
}

Task documents_file(const std::string& name, const TaskOptions& options) {
  auto samples = of_file(*file_of(name, options), options);
  return name.starts_with(kCompared) ? compared(std::move(samples), options) : answered(std::move(samples));
}

}  // namespace winnow::eval
