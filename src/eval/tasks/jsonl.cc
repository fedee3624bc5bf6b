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

using Read = std::function<Sample(const nlohmann::json& line, int number)>;

/// Samples of one file so far.
class Collector {
 public:
  Collector(const std::string& path, const TaskOptions& options, const Read& read)
      : path_(path), options_(options), read_(read) {}

  bool is_enough() const { return options_.limit > 0 && static_cast<int>(samples_.size()) == options_.limit; }

  /// `parse` gives the next line or element.
  void add(const std::function<nlohmann::json()>& parse) {
    ++number_;
    try {
      Sample sample = read_(parse(), number_);
      check(sample);
      samples_.push_back(std::move(sample));
    } catch (const nlohmann::json::exception& error) {
      report(error.what());
    } catch (const Error& error) {
      report(error.what());
    }
  }

  void skip() { ++number_; }

  std::vector<Sample> take() {
    if (samples_.empty()) throw InputError(fmt::format("{}: none of its {} lines is a sample", path_, number_));
    return std::move(samples_);
  }

 private:
  void report(const char* why) const {
    if (options_.on_bad_line) options_.on_bad_line(fmt::format("{} line {}: {}", path_, number_, why));
  }

  const std::string& path_;
  const TaskOptions& options_;
  const Read& read_;
  std::vector<Sample> samples_;
  int number_ = 0;
};

void collect_lines(std::ifstream& file, Collector& to) {
  for (std::string line; !to.is_enough() && std::getline(file, line);) {
    if (line.empty()) {
      to.skip();
    } else {
      to.add([&] { return nlohmann::json::parse(line); });
    }
  }
}

void collect_array(const std::string& path, std::ifstream& file, Collector& to) {
  try {
    for (const auto& element : nlohmann::json::parse(file)) {
      if (!to.is_enough()) to.add([&] { return element; });
    }
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

std::vector<Sample> read_samples(const std::string& path, const TaskOptions& options, const Read& sample_of) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: no such file", path));
  Collector collector(path, options, sample_of);
  if (path.ends_with(".json")) {
    collect_array(path, file, collector);
  } else {
    collect_lines(file, collector);
  }
  return collector.take();
}

std::string id_of(const nlohmann::json& line, int number) {
  if (!line.contains("id")) return std::to_string(number);
  return line["id"].is_string() ? line["id"].get<std::string>() : line["id"].dump();
}

}  // namespace winnow::eval
