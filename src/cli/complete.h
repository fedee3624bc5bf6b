// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace winnow::cli {

/// The command that shells call, which no help lists: `winnow complete WORD...`, with the words after `winnow` up to
/// the cursor. The last one may be empty.
inline constexpr const char* kCompleteCommand = "complete";

/// A line for each word that may take the last one's place: the word, and after a tab what it means, if that is known.
/// Empty where any word may stand, such as a file's name.
std::string completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace winnow::cli
