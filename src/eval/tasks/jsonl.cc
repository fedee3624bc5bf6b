#include "eval/tasks/jsonl.h"

#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "winnow/error.h"

namespace winnow::eval {

namespace {

void check(const Sample& sample) {
  if (sample.prompt.text.empty() && sample.prompt.question.empty()) throw InputError("the prompt is empty");
  if (sample.references.empty()) throw InputError("there are no answers");
  if (sample.metric == Metric::classification && sample.classes.empty()) throw InputError("there are no classes");
}

}  // namespace

std::vector<Sample> read_samples(const std::string& path, const TaskOptions& options,
                                 const std::function<Sample(const nlohmann::json& line, int number)>& sample_of) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: no such file", path));
  std::vector<Sample> out;
  int number = 0;
  const auto is_enough = [&] { return options.limit > 0 && static_cast<int>(out.size()) == options.limit; };
  for (std::string line; !is_enough() && std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      Sample sample = sample_of(nlohmann::json::parse(line), number);
      check(sample);
      out.push_back(std::move(sample));
    } catch (const nlohmann::json::exception& error) {
      if (options.on_bad_line) options.on_bad_line(fmt::format("{} line {}: {}", path, number, error.what()));
    } catch (const Error& error) {
      if (options.on_bad_line) options.on_bad_line(fmt::format("{} line {}: {}", path, number, error.what()));
    }
  }
  if (out.empty()) throw InputError(fmt::format("{}: none of its {} lines is a sample", path, number));
  return out;
}

}  // namespace winnow::eval
