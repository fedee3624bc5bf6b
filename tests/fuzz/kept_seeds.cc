// SPDX-License-Identifier: Apache-2.0
// Files of --dump-kept, for one head and for several.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  write_seed(folder / "one", R"({"spec": "full", "n_prompt": 3, "layers": [[[0, 1, 2]]]})");
  write_seed(folder / "text", R"({"spec":"full","n_prompt":3,"text_tokens":2,"text_hash":"0f","layers":[[[0,2]]]})");
  write_seed(folder / "some", R"({"spec": "ada-snapkv:window=4", "n_prompt": 900,
 "layers": [[[0, 5, 899], [1, 2]], [[7], []]]})");
  write_seed(folder / "windows", R"({"spec": "knorm", "n_prompt": 9, "layers": [[[7, 8]], [[2]]], "windows": [2, 0]})");
}
