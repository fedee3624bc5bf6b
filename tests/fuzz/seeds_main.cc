// SPDX-License-Identifier: Apache-2.0
// TARGET_seeds FOLDER: writes the target's seeds for libFuzzer.
#include <cstdio>

#include "fuzz/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  winnow::test::write_seeds(argv[1]);
}
