// SPDX-License-Identifier: Apache-2.0
// TARGET_replay INPUTS: runs the target's seeds as a plain test, with about INPUTS inputs from all seeds together:
// each unchanged, cut at some places, and with some bytes changed; every run makes the same cuts and changes. A finding
// aborts the process, as under libFuzzer.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/seeds.h"
#include "support/temp.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size);

namespace {

/// Cuts and changes of one seed at most.
constexpr int kCuts = 8;
constexpr int kChanges = 32;

void run(const std::string& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void run_around(const std::string& seed, int inputs, std::minstd_rand& random) {
  run(seed);
  const int cuts = std::min(kCuts, inputs / 4);
  for (int i = 0; i < cuts && !seed.empty(); ++i) run(seed.substr(0, random() % seed.size()));
  for (int i = 0; i < std::min(kChanges, inputs - cuts) && !seed.empty(); ++i) {
    std::string changed = seed;
    changed[random() % changed.size()] = static_cast<char>(random());
    run(changed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s INPUTS\n", argv[0]);
    return 2;
  }
  const winnow::test::TempFolder folder;
  winnow::test::write_seeds(folder.path());
  std::vector<std::filesystem::path> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) seeds.push_back(entry.path());
  std::sort(seeds.begin(), seeds.end());
  std::minstd_rand random;
  const int inputs = std::atoi(argv[1]) / std::max(1, static_cast<int>(seeds.size()));
  for (const auto& seed : seeds) run_around(read(seed), inputs, random);
  std::printf("%zu seeds\n", seeds.size());
  return seeds.empty() ? 1 : 0;
}
