// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace winnow::cli {

/// The sentence for the first argument that the command line has and its command does not know, with the nearest that
/// it knows; empty: there is none. REQUIRES: a parse has failed.
std::string unexpected_argument(const CLI::App& app);

}  // namespace winnow::cli
