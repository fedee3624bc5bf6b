// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/longbench.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "eval/tasks/texts.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using Json = nlohmann::json;

/// One of LongBench's 21 data sets (arXiv 2308.14508, Table 1). `question`: beginning of the question in prompts that
/// are given whole and do not follow the template; its last occurrence counts. Empty: the template's text between
/// context and input.
struct Dataset {
  const char* name;
  const char* category;
  Metric metric;
  PromptFormat format = PromptFormat::chat;
  const char* question = "";
};

constexpr PromptFormat kRaw = PromptFormat::raw;

/// Few-shot and code prompts go without a chat template, as in the official script.
constexpr Dataset kDatasets[] = {
    {"narrativeqa", "single-doc QA", Metric::qa_f1, PromptFormat::chat, "\n\nNow, answer the question based on"},
    {"qasper", "single-doc QA", Metric::qa_f1, PromptFormat::chat, "Answer the question based on"},
    {"multifieldqa_en", "single-doc QA", Metric::qa_f1},
    {"multifieldqa_zh", "single-doc QA", Metric::qa_f1_zh},
    {"hotpotqa", "multi-doc QA", Metric::qa_f1},
    {"2wikimqa", "multi-doc QA", Metric::qa_f1},
    {"musique", "multi-doc QA", Metric::qa_f1},
    {"dureader", "multi-doc QA", Metric::rouge_l_zh},
    {"gov_report", "summarization", Metric::rouge_l},
    {"qmsum", "summarization", Metric::rouge_l},
    {"multi_news", "summarization", Metric::rouge_l},
    {"vcsum", "summarization", Metric::rouge_l_zh},
    {"trec", "few-shot", Metric::classification, kRaw, "\nQuestion:"},
    {"triviaqa", "few-shot", Metric::qa_f1, kRaw, "\n\nPassage:"},
    {"samsum", "few-shot", Metric::rouge_l, kRaw, "\n\nDialogue:"},
    {"lsht", "few-shot", Metric::classification, kRaw, "\n新闻内容："},
    {"passage_count", "synthetic", Metric::count},
    {"passage_retrieval_en", "synthetic", Metric::retrieval},
    {"passage_retrieval_zh", "synthetic", Metric::retrieval},
    {"lcc", "code", Metric::code_similarity, kRaw},
    {"repobench-p", "code", Metric::code_similarity, kRaw, "Next line of code:\n"},
};

Json read_json(const std::filesystem::path& path) {
  try {
    return parse_json<Json>(read_file(path));
  } catch (const JsonError& error) {
    throw InputError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

/// A data set's template, cut at {context} and {input}.
struct Template {
  std::string before;   ///< text before the context
  std::string between;  ///< text between context and input; the rest if there is no input
  std::string after;    ///< text after the input

  explicit Template(const std::string& text) {
    const std::string context = "{context}";
    const std::string input = "{input}";
    const auto c = text.find(context);
    if (c == std::string::npos) throw InputError(fmt::format("a prompt without {{context}}: {:.60}", text));
    before = text.substr(0, c);
    const auto i = text.find(input, c);
    between = text.substr(c + context.size(), i == std::string::npos ? i : i - c - context.size());
    if (i != std::string::npos) after = text.substr(i + input.size());
  }
};

/// The prompt of a line with the official fields.
PromptText filled_form(const Template& form, const Json& line) {
  PromptText out;
  out.text = form.before + line.at("context").get<std::string>();
  out.question = form.between + line.value("input", "") + form.after;
  return out;
}

/// The prompt of a line that has it whole, cut before its question.
PromptText cut_prompt(const Dataset& dataset, const Template& form, const std::string& prompt) {
  const std::string mark = *dataset.question != '\0' ? dataset.question : form.between;
  const auto at = prompt.rfind(mark);
  if (at == std::string::npos)
    throw InputError(fmt::format("the prompt has no \"{:.40}\", where its question begins", mark));
  PromptText out;
  out.text = prompt.substr(0, at);
  out.question = prompt.substr(at);
  return out;
}

class Reader {
 public:
  Reader(const Dataset& dataset, const std::filesystem::path& config)
      : dataset_(dataset),
        form_(read_json(config / "dataset2prompt.json").at(dataset.name).get<std::string>()),
        max_tokens_(read_json(config / "dataset2maxlen.json").at(dataset.name).get<int>()) {}

  Sample sample(const Json& line, int number) const {
    Sample out;
    out.task = dataset_.name;
    out.id = id_of(line).value_or(std::to_string(number));
    out.prompt = line.contains("prompt") ? cut_prompt(dataset_, form_, line["prompt"].get<std::string>())
                                         : filled_form(form_, line);
    out.prompt.format = dataset_.format;
    out.references = line.at("answers").get<std::vector<std::string>>();
    if (line.contains("all_classes") && line["all_classes"].is_array())
      out.classes = line["all_classes"].get<std::vector<std::string>>();
    out.metric = dataset_.metric;
    out.scored = std::string(dataset_.category) == "few-shot" ? ScoredText::first_line : ScoredText::whole;
    out.max_tokens = max_tokens_;
    out.labels["category"] = dataset_.category;
    if (line.contains("length")) out.labels["length"] = bucket(line["length"].get<int>());
    return out;
  }

 private:
  static std::optional<std::string> id_of(const Json& line) {
    for (const char* key : {"_id", "id"}) {
      if (line.contains(key)) return line[key].is_string() ? line[key].get<std::string>() : line[key].dump();
    }
    return {};
  }

  /// The length's class in LongBench-E.
  static const char* bucket(int words) { return words < 4000 ? "0-4k" : words < 8000 ? "4-8k" : "8k+"; }

  const Dataset& dataset_;
  Template form_;
  int max_tokens_;
};

std::vector<Sample> dataset_samples(const Dataset& dataset, const TaskOptions& options,
                                    const std::function<void(Sample&)>& change) {
  const std::filesystem::path data(options.data);
  const Reader reader(dataset, data / "longbench-config");
  // The official file, or the extract.
  const std::string name = std::string(dataset.name) + ".jsonl";
  const auto file =
      std::filesystem::exists(data / "longbench" / name) ? data / "longbench" / name : data / "longbench-mini" / name;
  return read_samples(file.string(), options, [&](const Json& line, int number) {
    Sample out = reader.sample(line, number);
    change(out);
    return out;
  });
}

const Dataset& dataset_of(const std::string& name) {
  return *std::find_if(std::begin(kDatasets), std::end(kDatasets), [&](const Dataset& d) { return d.name == name; });
}

}  // namespace

std::vector<Sample> longbench_samples(const std::string& name, const TaskOptions& options,
                                      const std::function<void(Sample&)>& change) {
  return dataset_samples(dataset_of(name), options, change);
}

Metric longbench_metric(const std::string& name) { return dataset_of(name).metric; }

void add_longbench(std::vector<TaskInfo>& to) {
  for (const auto& dataset : kDatasets) {
    to.push_back({fmt::format("longbench/{}", dataset.name), fmt::format("LongBench, {}", dataset.category),
                  name_of(dataset.metric), "the template's part after the context",
                  [&dataset](const Model&, const TaskOptions& options) {
                    return Task{dataset_samples(dataset, options, [](Sample&) {}), answering()};
                  },
                  fmt::format("longbench/{}.jsonl", dataset.name), fmt::format("longbench-mini/{}.jsonl", dataset.name),
                  TaskInfo::max_prompt});
  }
}

}  // namespace winnow::eval
