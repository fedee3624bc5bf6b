// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace winnow::cli {

/// The error for the first argument that its command does not know, with the nearest known one; "" if there is none.
/// REQUIRES: parsing ended early.
std::string unexpected_argument(const CLI::App& app);
/// The same if that argument is in the place of a command, otherwise "".
std::string unknown_command(const CLI::App& app);

/// The command line's command if it needs a subcommand, such as `winnow docs`, otherwise "". REQUIRES: as above.
std::string needs_command(const CLI::App& app);

}  // namespace winnow::cli
