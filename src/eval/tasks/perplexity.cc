// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "eval/tasks/all.h"
#include "eval/tasks/texts.h"

namespace winnow::eval {

namespace {

/// How a text is cut into samples.
struct Cut {
  const char* name;
  int length;   ///< tokens of a sample by default
  int samples;  ///< of each text, by default
  int share;    ///< the prompt is 1 / share of a sample, at most `most` tokens
  int most;     ///< tokens of the longest prompt
  int every;    ///< tokens of a span with a perplexity of its own; 0: none
};

constexpr Cut kChunked = {"perplexity/chunked", 2048, 16, 2, 1 << 30, 0};
constexpr Cut kSliding = {"perplexity/sliding", 8192, 1, 4, 2048, 1000};

Sample perplexity_sample(const Model& model, const Cut& cut, std::string_view text, int length) {
  const int prompt = std::min(length / cut.share, cut.most);
  const auto parts = parts_of(model, text, std::array{prompt, length - prompt});
  Sample out;
  out.task = cut.name;
  out.prompt.text = parts[0];
  out.prompt.format = PromptFormat::raw;
  out.references = {parts[1]};
  out.max_tokens = std::max(1, length - prompt - 1);  // the last token of the reference is not read
  return out;
}

Task make_perplexity(const Model& model, const Cut& cut, const TaskOptions& options) {
  Task out;
  out.measure = teacher_forcing(cut.every);
  const int count = options.limit > 0 ? options.limit : cut.samples;
  for (const auto& file : text_files(std::filesystem::path(options.data) / "text")) {
    const std::string text = read_file(file);
    for (const int length : options.lengths.empty() ? std::vector{cut.length} : options.lengths) {
      for (int i = 0; i < count; ++i) {
        auto sample = perplexity_sample(model, cut, spread_excerpt(text, i, count), length);
        sample.id = fmt::format("{}-{}-{}", file.stem().string(), length, i);
        sample.labels = {{"length", std::to_string(length)}, {"text", file.stem().string()}};
        out.samples.push_back(std::move(sample));
      }
    }
  }
  return out;
}

void add_perplexity_task(const Cut& cut, const char* source, const char* protocol, std::vector<TaskInfo>& to) {
  to.push_back({cut.name, source, "next-token accuracy", protocol,
                [&cut](const Model& model, const TaskOptions& options) { return make_perplexity(model, cut, options); },
                "text", "", TaskInfo::length});
}

}  // namespace

void add_perplexity(std::vector<TaskInfo>& to) {
  add_perplexity_task(kChunked, "the texts of text/, 16 samples of --length tokens each",
                      "none: half of a sample is read, the other half is teacher-forced", to);
  add_perplexity_task(kSliding, "the same, one sample each, reported for every 1,000 tokens",
                      "none: a quarter is read (2,048 at most), the rest is teacher-forced", to);
}

}  // namespace winnow::eval
