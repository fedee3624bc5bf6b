// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace winnow::bench {

/// Parses a program's arguments and does its work. Returns the exit status.
template <class Work>
int run_program(CLI::App& app, int argc, char** argv, const Work& work) {
  CLI11_PARSE(app, argc, argv);
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace winnow::bench
