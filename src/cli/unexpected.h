// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace winnow::cli {

/// The sentence for the first argument that the command line has and its command does not know, with the nearest that
/// it knows; empty: there is none. REQUIRES: a parse has ended early.
std::string unexpected_argument(const CLI::App& app);
/// The same where that argument stands in the place of a command; empty elsewhere.
std::string unknown_command(const CLI::App& app);

/// The words of the command line's command if it needs a further one, such as `winnow docs`; empty: it needs none.
/// REQUIRES: as above.
std::string needs_command(const CLI::App& app);

}  // namespace winnow::cli
