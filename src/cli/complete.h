// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace winnow::cli {

/// A hidden command that shells call: `winnow complete WORD...`, with the words after `winnow` up to the cursor. The
/// last word may be empty.
inline constexpr const char* kCompleteCommand = "complete";

/// Candidates for the last word, one a line: the word, and after a tab its meaning, if known. Empty if any word is
/// possible, such as a file's name.
std::string completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace winnow::cli
