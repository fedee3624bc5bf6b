// SPDX-License-Identifier: Apache-2.0
// Prompts of `run --jsonl`: with and without an id, texts with escapes, an empty line, and invalid lines.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  write_seed(folder / "two",
             "{\"id\":\"a\",\"text\":\"Anna lives in Kyiv.\",\"question\":\"Where?\"}\n\n"
             "{\"id\":7,\"prompt\":\"\\u00e9\\n\\ud83d\\ude00\"}\n");
  write_seed(folder / "nested", R"({"text":"x","question":"y","more":[[{"a":[null,true,1e9,-0.5]}]]})");
  write_seed(folder / "wrong", "[]\n{}\n{\"text\":1}\n{\"text\":\"cut");
}
