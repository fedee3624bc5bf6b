// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "eval/tasks/made_up.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr int kMadeUpLines = 25;  // samples, as many as LongEval's files have

constexpr const char* kBefore =
    "Below is a record of lines I want you to remember. Each line begins with 'line <line index>' and contains a "
    "'<REGISTER_CONTENT>' at "
    "the end of the line as a numerical value. For each line index, memorize its corresponding <REGISTER_CONTENT>. At "
    "the end of the "
    "record, I will ask you to retrieve the corresponding <REGISTER_CONTENT> of a certain line index. Now the record "
    "start:\n\n";
constexpr const char* kRecordEnd = "\nNow the record is over.";
constexpr const char* kAsk = " Tell me what is the <REGISTER_CONTENT> in line {}? I need the number. ";

/// The sample of `prompt`, which is cut at the end of the record.
Sample lines_sample(const std::string& prompt, const std::string& number, int lines, const std::string& id) {
  const auto cut = prompt.rfind(kRecordEnd);
  if (cut == std::string::npos) throw InputError(fmt::format("the prompt has no \"{}\"", kRecordEnd + 1));
  Sample out;
  out.task = "lines";
  out.id = fmt::format("{}-{}", lines, id);
  out.prompt.text = prompt.substr(0, cut);
  out.prompt.question = prompt.substr(cut);
  out.references = {number};
  out.metric = Metric::last_number;
  out.max_tokens = 16;
  out.labels = {{"length", std::to_string(lines)}};
  return out;
}

Sample made_up_lines(int lines, int number, std::uint32_t seed) {
  Random random(seed, "lines", number);
  std::string prompt = kBefore;
  std::vector<std::pair<std::string, int>> records;
  for (std::set<std::string> names; static_cast<int>(records.size()) < lines;) {
    if (const auto name = made_up_word(random); names.insert(name).second)
      records.emplace_back(name, 1 + random.below(50000));
  }
  for (const auto& [name, content] : records)
    prompt += fmt::format("line {}: REGISTER_CONTENT is <{}>\n", name, content);
  const auto& [name, content] = records[random.below(lines)];
  return lines_sample(prompt + kRecordEnd + fmt::format(kAsk, name), std::to_string(content), lines,
                      std::to_string(number));
}

std::vector<Sample> lines_samples(int lines, const TaskOptions& options) {
  const auto file = std::filesystem::path(options.data) / "lines" / fmt::format("{}_lines.jsonl", lines);
  if (std::filesystem::exists(file)) {
    return read_samples(file.string(), options, [&](const nlohmann::json& line, int number) {
      return lines_sample(line.at("prompt").get<std::string>(), line.at("expected_number").dump(), lines,
                          std::to_string(number));
    });
  }
  return make_up(options, kMadeUpLines,
                 [&](std::uint32_t seed, int number) { return made_up_lines(lines, number, seed); });
}

Task make_lines(const Model&, const TaskOptions& options) {
  return task_by_length(options, {200, 300, 400}, [&](int lines) { return lines_samples(lines, options); });
}

}  // namespace

void add_lines(std::vector<TaskInfo>& to) {
  to.push_back({"lines", "LongEval line retrieval: files, or generated with --length lines",
                name_of(Metric::last_number), "the line whose number is asked for", make_lines, "", "",
                TaskInfo::length | TaskInfo::seed});
}

}  // namespace winnow::eval
