// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace winnow::cli {

/// True for an option with a value, false for a flag.
bool takes_value(const CLI::Option& option);

/// Makes options and commands that are added from now on use their variables' values as defaults, and wrap their help.
void begin_help(CLI::App& app);

/// Appends each option's default to its description, in subcommands, too, unless the description has one.
void say_defaults(CLI::App& app);

}  // namespace winnow::cli
