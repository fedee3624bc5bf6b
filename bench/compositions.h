#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "winnow/methods.h"
#include "winnow/session.h"

namespace winnow::bench {

/// Methods and budgets that are measured against each other.
struct Compositions {
  std::vector<std::string> specs;
  std::vector<std::string> budgets;

  Compositions(std::vector<std::string> default_budgets) : budgets(std::move(default_budgets)) {
    for (const auto& method : list_methods()) {
      if (method.name != "full") specs.push_back(method.name);
    }
  }
  void add_options(CLI::App& app) {
    app.add_option("--spec", specs, "a method; may be repeated (default: all)");
    app.add_option("--budgets", budgets, "entries per KV head")->delimiter(',');
  }
  /// The full cache, then every method with every budget.
  std::vector<CacheOptions> options() const {
    std::vector<CacheOptions> out(1);
    for (const auto& spec : specs) {
      for (const auto& budget : budgets) {
        auto& o = out.emplace_back();
        o.spec = Spec::parse(spec);
        o.budget = Budget::parse(budget);
      }
    }
    return out;
  }
};

/// Parses a program's arguments and does its work; its exit status.
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
