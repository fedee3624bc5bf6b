// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/kept/kept.h"

namespace winnow::cli {

/// Some consecutive tokens of the text.
struct KeptPassage {
  int first = 0;  ///< position of its first token in the prompt
  int tokens = 0;
  double share = 0;  ///< of its tokens in all heads' lanes that are kept
  std::string words;
};

/// The text's tokens as the prompt had them.
struct TextTokens {
  int first = 0;                    ///< position of the first
  std::vector<std::string> pieces;  ///< bytes of each
};

/// The `most` passages with the highest shares, the highest first. No two overlap.
std::vector<KeptPassage> best_passages(const Kept& kept, const TextTokens& text, int most);
std::string list(const std::vector<KeptPassage>& passages);

}  // namespace winnow::cli
