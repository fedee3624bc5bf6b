// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <iterator>

#include "base/as_size.h"
#include "eval/tasks/all.h"
#include "eval/tasks/made_up.h"
#include "eval/tasks/texts.h"

namespace winnow::eval {

namespace {

struct Needle {
  const char* sentence;
  const char* question;  ///< text that the model continues
  const char* answer;
  const char* kind;
};

constexpr Needle kNeedles[] = {
    {"The best thing to do in San Francisco is to eat a sandwich and sit in Dolores Park on a sunny day.",
     "The best thing to do in San Francisco is to", "eat a sandwich", "words"},
    {"The secret of grandmother's soup is a spoon of dried blue mushrooms.",
     "The secret of grandmother's soup is a spoon of", "dried blue mushrooms", "words"},
    {"The old lighthouse keeper hid his gold coins in a green teapot.",
     "The old lighthouse keeper hid his gold coins in a", "green teapot", "words"},
    {"The special magic number of Lisbon is 7391825.", "The special magic number of Lisbon is", "7391825", "digits"},
    {"The special magic number of Oslo is 2648013.", "The special magic number of Oslo is", "2648013", "digits"},
};

/// Inserts the needle after the sentence whose end is closest to the depth.
std::string hide(const std::string& text, const char* sentence, int depth) {
  const std::string stop = ". ";
  if (depth == 0) return std::string(sentence) + " " + text;
  const auto end = depth == 100 ? std::string::npos : text.find(stop, text.size() * as_size(depth) / 100);
  if (end == std::string::npos) return text + stop + sentence;
  return text.substr(0, end) + stop + sentence + " " + text.substr(end + stop.size());
}

Sample niah_sample(const std::string& text, const Needle& needle, std::size_t number, int length, int depth) {
  Sample out;
  out.task = "niah";
  out.id = fmt::format("{}-{}-{}", length, depth, number);
  out.prompt.text = hide(text, needle.sentence, depth);
  out.prompt.question = fmt::format("\n\n{}", needle.question);
  out.prompt.format = PromptFormat::raw;
  out.references = {needle.answer};
  out.metric = Metric::contains_all;
  out.max_tokens = 10;
  out.labels = {{"length", std::to_string(length)}, {"depth", std::to_string(depth)}, {"kind", needle.kind}};
  return out;
}

Task make_niah(const Model& model, const TaskOptions& options) {
  const std::string all = read_folder(std::filesystem::path(options.data) / "needle");
  return task_by_length(options, {1000, 2000, 4000}, [&](int length) {
    const std::string text = parts_of(model, all, std::span(&length, 1)).front();
    std::vector<Sample> out;
    int made = 0;
    for (std::size_t n = 0; n < std::size(kNeedles); ++n) {
      for (const int depth : depths_of(options)) {
        if (options.limit == 0 || made++ < options.limit)
          out.push_back(niah_sample(text, kNeedles[n], n, length, depth));
      }
    }
    return out;
  });
}

}  // namespace

void add_niah(std::vector<TaskInfo>& to) {
  to.push_back({"niah", "Needle in a Haystack: five sentences, five depths", name_of(Metric::contains_all),
                "the sentence to complete", make_niah, "needle", "", TaskInfo::length});
}

}  // namespace winnow::eval
