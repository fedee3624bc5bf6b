// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/origins.h"

#include <algorithm>
#include <string_view>

namespace winnow::eval {

namespace {

struct Origin {
  std::string_view folder;
  const char* sentence;
};

constexpr Origin kOrigins[] = {
    {"longbench",
     "longbench/ is data.zip of https://huggingface.co/datasets/THUDM/LongBench, unpacked, and longbench-config/ the "
     "folder config of https://github.com/THUDM/LongBench"},
    {"longbench-mini",
     "longbench-mini/ has MiniLongBench's extract of it: task, id, prompt, answers and max_new_tokens in each line"},
    {"needle",
     "needle/ may have any essays as .txt, such as PaulGrahamEssays of "
     "https://github.com/gkamradt/LLMTest_NeedleInAHaystack"},
    {"ruler", "ruler/ has what download_qa_dataset.sh of https://github.com/hsiehjackson/RULER fetches"},
    {"short", "short/ has the public test sets of ARC-Easy, OpenBookQA, WiC and WinoGrande"},
    {"text", "text/ may have any long texts as .txt"},
    {"multi-doc", "multi-doc/ has questions with their documents in the form that docs/tasks.md describes"},
};

}  // namespace

std::string origins_of(const std::vector<std::string>& paths) {
  std::string out;
  for (const auto& [folder, sentence] : kOrigins) {
    const auto lies_there = [&](const std::string& path) { return path.substr(0, path.find('/')) == folder; };
    if (std::ranges::any_of(paths, lies_there)) out += (out.empty() ? "" : "; ") + std::string(sentence);
  }
  return out;
}

}  // namespace winnow::eval
