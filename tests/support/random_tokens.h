// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <vector>

#include "winnow/prompt.h"

namespace winnow::test {

/// Random tokens other than the first three: <unk>, <s> and </s>.
inline std::vector<Token> random_tokens(int n, int vocabulary, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<Token> any(3, vocabulary - 1);
  std::vector<Token> out(n);
  for (Token& token : out) token = any(random);
  return out;
}

}  // namespace winnow::test
