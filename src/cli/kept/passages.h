// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/kept/kept.h"

namespace winnow::cli {

/// Consecutive tokens of the text.
struct KeptPassage {
  int first = 0;  ///< position of its first token in the prompt
  int tokens = 0;
  double share = 0;  ///< share of its entries, over all heads, that are kept
  std::string words;
};

/// The text's tokens as they are in the prompt.
struct TextTokens {
  int first = 0;                         ///< position of the first
  std::vector<std::string> token_texts;  ///< text of each token, in bytes
};

/// The `most` passages with the highest shares, in descending order, without overlaps.
std::vector<KeptPassage> best_passages(const Kept& kept, const TextTokens& text, int most);
std::string list(const std::vector<KeptPassage>& passages);

}  // namespace winnow::cli
