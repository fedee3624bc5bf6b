#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "eval/tasks/all.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

struct Needle {
  const char* sentence;
  const char* question;  ///< what the model completes
  const char* answer;
  const char* kind;
};

constexpr Needle kNeedles[] = {
    {"The best thing to do in San Francisco is to eat a sandwich and sit in Dolores Park on a sunny day.",
     "The best thing to do in San Francisco is to", "eat a sandwich", "words"},
    {"The secret of grandmother's soup is a spoon of dried blue mushrooms.", "The secret of grandmother's soup is a spoon of",
     "dried blue mushrooms", "words"},
    {"The old lighthouse keeper hid his gold coins in a green teapot.", "The old lighthouse keeper hid his gold coins in a", "green teapot",
     "words"},
    {"The special magic number of Lisbon is 7391825.", "The special magic number of Lisbon is", "7391825", "digits"},
    {"The special magic number of Oslo is 2648013.", "The special magic number of Oslo is", "2648013", "digits"},
};

constexpr int kDepths[] = {0, 25, 50, 75, 100};  // percent

/// All texts of a folder, in the order of their names.
std::string haystack(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) throw InputError(fmt::format("{}: no such folder", folder.string()));
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string out;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    out.append(std::istreambuf_iterator<char>(file), {});
    out += "\n\n";
  }
  return out;
}

/// The beginning of a text, so many tokens long.
std::string first_tokens(const Model& model, const std::string& text, int tokens) {
  constexpr std::size_t kBytes = 8;  // of a token, more than in any prose
  const std::string some = text.substr(0, static_cast<std::size_t>(tokens) * kBytes);
  const auto ids = model.tokenize(some);
  if (static_cast<int>(ids.size()) < tokens) throw InputError(fmt::format("the haystack has {} tokens, {} are needed", ids.size(), tokens));
  std::size_t bytes = 0;
  for (int i = 0; i < tokens; ++i) bytes += model.piece(ids[static_cast<std::size_t>(i)]).size();
  return some.substr(0, bytes);
}

/// With the needle behind the sentence that ends nearest to the depth.
std::string hide(const std::string& text, const char* sentence, int depth) {
  const std::string stop = ". ";
  if (depth == 0) return std::string(sentence) + " " + text;
  const auto end = depth == 100 ? std::string::npos : text.find(stop, text.size() * static_cast<std::size_t>(depth) / 100);
  if (end == std::string::npos) return text + stop + sentence;
  return text.substr(0, end) + stop + sentence + " " + text.substr(end + stop.size());
}

Sample sample_of(const std::string& text, const Needle& needle, std::size_t number, int length, int depth) {
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

Task make(const Model& model, const TaskOptions& options) {
  const std::string all = haystack(std::filesystem::path(options.data) / "needle");
  Task out;
  out.measure = answering();
  for (const int length : options.lengths.empty() ? std::vector{1000, 2000, 4000} : options.lengths) {
    const std::string text = first_tokens(model, all, length);
    int made = 0;
    for (std::size_t n = 0; n < std::size(kNeedles); ++n) {
      for (const int depth : kDepths) {
        if (options.limit == 0 || made++ < options.limit) out.samples.push_back(sample_of(text, kNeedles[n], n, length, depth));
      }
    }
  }
  return out;
}

}  // namespace

void add_niah(std::vector<TaskInfo>& to) {
  to.push_back({"niah", "Needle in a Haystack: five sentences, five depths", name_of(Metric::contains_all),
                "the sentence that is to be completed", make});
}

}  // namespace winnow::eval
