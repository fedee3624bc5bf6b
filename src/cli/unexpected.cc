// SPDX-License-Identifier: Apache-2.0
#include "cli/unexpected.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "policy/suggest.h"

namespace winnow::cli {

namespace {

/// Names without their dashes.
std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> out;
  for (const auto* const option : command.get_options()) {
    const auto& words = option->get_lnames();
    const auto& letters = option->get_snames();
    out.insert(out.end(), words.begin(), words.end());
    out.insert(out.end(), letters.begin(), letters.end());
  }
  return out;
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> out;
  for (const auto* const below : command.get_subcommands({})) out.push_back(below->get_name());
  return out;
}

/// `called` is the command with its parents, such as `winnow docs`.
std::string sentence(const CLI::App& command, const std::string& called, const std::string& argument) {
  if (argument.starts_with('-')) {
    const auto option = argument.substr(0, argument.find('='));
    const auto name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    const auto known = names_of_options(command);
    const auto* const near = policy::nearest(name, known);
    const auto hint =
        near == nullptr ? "" : fmt::format("did you mean {}{}? Otherwise ", near->size() > 1 ? "--" : "-", *near);
    return fmt::format("there is no option {}: {}see {} --help", option, hint, called);
  }
  const auto commands = names_of_commands(command);
  if (commands.empty()) return fmt::format("unexpected argument {}: see {} --help", argument, called);
  return fmt::format("there is no command {}: {}", argument, policy::suggest(argument, commands));
}

/// The place where the known words end.
struct Place {
  const CLI::App* command;
  std::string called;    ///< with its parents
  std::string argument;  ///< the first that the command does not know; empty: it knows all
};

Place end_of_known(const CLI::App& app) {
  Place out{&app, app.get_name(), {}};
  for (;;) {
    const auto left = out.command->remaining();
    const auto first = std::find_if(left.begin(), left.end(), [](const auto& argument) { return argument != "--"; });
    if (first != left.end()) out.argument = *first;
    const auto parsed = out.command->get_subcommands();
    if (!out.argument.empty() || parsed.empty()) return out;
    out.command = parsed.front();
    out.called += " " + out.command->get_name();
  }
}

}  // namespace

std::string unexpected_argument(const CLI::App& app) {
  const Place place = end_of_known(app);
  return place.argument.empty() ? "" : sentence(*place.command, place.called, place.argument);
}

std::string unknown_command(const CLI::App& app) {
  const Place place = end_of_known(app);
  const bool is_name = !place.argument.empty() && !place.argument.starts_with('-');
  return is_name && !names_of_commands(*place.command).empty() ? unexpected_argument(app) : "";
}

std::string needs_command(const CLI::App& app) {
  const Place place = end_of_known(app);
  return place.argument.empty() && place.command->get_require_subcommand_min() > 0 ? place.called : "";
}

}  // namespace winnow::cli
