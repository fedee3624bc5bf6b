// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace winnow::cli {

/// Whether an option has a value, unlike a flag.
bool takes_value(const CLI::Option& option);

/// Has the options of all commands that are added next keep their variables' values as their defaults.
void remember_defaults(CLI::App& app);

/// Ends the description of each option with its default, below the command, too, unless it names one itself.
void say_defaults(CLI::App& app);

}  // namespace winnow::cli
