// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace winnow::cli {

/// Splits a line as a shell does: quotes and backslashes keep spaces within a word. Throws UsageError for an unclosed
/// quote, and for a backslash at the end.
std::vector<std::string> words_of(std::string line);

}  // namespace winnow::cli
