// SPDX-License-Identifier: Apache-2.0
// Records of an evaluation: scored, skipped, with values and labels, and with a cut last line.
#include <nlohmann/json.hpp>

#include "eval/record.h"
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  eval::Record scored;
  scored.key = {"niah", "0", "snapkv", "256", "f16", "question-aware", "0123456789abcdef"};
  scored.score = 62.5;
  scored.values = {{"kl", 0.25}};
  scored.labels = {{"length", "4000"}, {"depth", "50"}, {"category", "needles"}};
  scored.prompt_tokens = 4000;
  eval::Record skipped = scored;
  skipped.key.spec = "full";
  skipped.key.budget.clear();
  skipped.skipped = "the prompt has 4000 tokens, the budget 8000";
  const auto line = [](const eval::Record& record) { return eval::to_json(record).dump() + "\n"; };
  write_seed(folder / "scored", line(scored));
  write_seed(folder / "both", line(scored) + line(skipped));
  write_seed(folder / "cut", line(scored) + line(skipped).substr(0, 40));
}
