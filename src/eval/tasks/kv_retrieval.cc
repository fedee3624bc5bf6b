// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "eval/tasks/all.h"
#include "eval/tasks/jsonl.h"
#include "eval/tasks/made_up.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr int kMadeUpPairs = 50;  // samples of each number of keys
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Depth of a key in the paper's files, rounded to 25 percent.
int depth_of(std::size_t position, std::size_t count) {
  const double percent = count > 1 ? 100.0 * static_cast<double>(position) / static_cast<double>(count - 1) : 0;
  return static_cast<int>(std::lround(percent / 25)) * 25;
}

/// A prompt as in "Lost in the Middle".
Sample kv_sample(const Pairs& pairs, std::size_t asked, int depth, const std::string& id) {
  Sample out;
  out.task = "kv-retrieval";
  out.id = fmt::format("{}-{}", pairs.size(), id);
  std::string& text = out.prompt.text;
  text = "Extract the value corresponding to the specified key in the JSON object below.\n\nJSON data:\n";
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    text += fmt::format("{}\"{}\": \"{}\"{}\n", i == 0 ? "{" : " ", pairs[i].first, pairs[i].second,
                        i + 1 == pairs.size() ? "}" : ",");
  }
  out.prompt.question = fmt::format("\nKey: \"{}\"\nCorresponding value:", pairs[asked].first);
  out.prompt.format = PromptFormat::raw;
  out.references = {pairs[asked].second};
  out.metric = Metric::contains_all;
  out.max_tokens = 64;
  out.labels = {{"length", std::to_string(pairs.size())}, {"depth", std::to_string(depth)}};
  return out;
}

/// Parses a line of the paper's files.
Sample of_line(const nlohmann::json& line, int number) {
  const auto pairs = line.at("ordered_kv_records").get<Pairs>();
  const auto key = line.at("key").get<std::string>();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].first == key) return kv_sample(pairs, i, depth_of(i, pairs.size()), std::to_string(number));
  }
  throw InputError(fmt::format("the key {} is not among the {} records", key, pairs.size()));
}

Sample made_up_pairs(int keys, int number, std::uint32_t seed, int depth) {
  Random random(seed, "kv-retrieval", number);
  Pairs pairs;
  for (int i = 0; i < keys; ++i) {
    auto key = made_up_uuid(random);
    pairs.emplace_back(std::move(key), made_up_uuid(random));
  }
  return kv_sample(pairs, (pairs.size() - 1) * as_size(depth) / 100, depth, std::to_string(number));
}

std::vector<Sample> kv_samples(int keys, const TaskOptions& options) {
  const auto file =
      std::filesystem::path(options.data) / "kv-retrieval" / fmt::format("kv-retrieval-{}_keys.jsonl", keys);
  if (std::filesystem::exists(file)) return read_samples(file.string(), options, of_line);
  const auto depths = depths_of(options);
  return make_up(options, kMadeUpPairs, [&](std::uint32_t seed, int number) {
    return made_up_pairs(keys, number, seed, depths[as_size(number) % depths.size()]);
  });
}

Task make_kv_retrieval(const Model&, const TaskOptions& options) {
  return task_by_length(options, {75, 140, 300}, [&](int keys) { return kv_samples(keys, options); });
}

}  // namespace

void add_kv_retrieval(std::vector<TaskInfo>& to) {
  to.push_back({"kv-retrieval", "Lost in the Middle: files, or generated with --length keys",
                name_of(Metric::contains_all), "the key of the value that is asked for", make_kv_retrieval, "", "",
                TaskInfo::length | TaskInfo::seed});
}

}  // namespace winnow::eval
