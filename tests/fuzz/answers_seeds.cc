// SPDX-License-Identifier: Apache-2.0
// Answers of `run --jsonl`: complete, without the last line feed, cut at several places, and lines that are not
// answers.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  const std::string first = R"({"hash":"0123456789abcdef","id":"a","answer":"Kyiv"})";
  const std::string second = R"({"hash":"00112233aabbccdd","id":7,"answer":"é","tokens":3})";
  write_seed(folder / "whole", first + "\n" + second + "\n");
  write_seed(folder / "unended", first + "\n" + second);
  write_seed(folder / "cut", first + "\n" + second.substr(0, 45));
  write_seed(folder / "cut_in_hash", first + "\n" + second.substr(0, 12));
  write_seed(folder / "foreign", "# My notes\n" + first + "\n");
}
