// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace winnow::cli {

/// The words of a line, as a shell has them: quotes and backslashes keep spaces within a word. Throws UsageError for a
/// quote that is not closed, and for a backslash at the end.
std::vector<std::string> words_of(std::string line);

}  // namespace winnow::cli
