// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <string>

namespace winnow::cli {

namespace {

/// The variable's value as a user would type it; removes the brackets that CLI11 puts around lists.
std::string default_of(const CLI::Option& option) {
  std::string out = option.get_default_str();
  if (out.starts_with('[') && out.ends_with(']')) out = out.substr(1, out.size() - 2);
  return out.empty() || out == "\"\"" ? "none" : out;
}

void say_default(CLI::Option& option) {
  const std::string& description = option.get_description();
  if (takes_value(option) && !option.get_required() && description.find("default: ") == std::string::npos)
    option.description(fmt::format("{} (default: {})", description, default_of(option)));
  option.default_str("");  // CLI11 would put it before the description
}

}  // namespace

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

void remember_defaults(CLI::App& app) { app.option_defaults()->always_capture_default(); }

void say_defaults(CLI::App& app) {
  for (auto* const option : app.get_options()) say_default(*option);
  for (auto* const below : app.get_subcommands({})) say_defaults(*below);
}

}  // namespace winnow::cli
