// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/words.h"

#include <histedit.h>

#include <algorithm>
#include <memory>

#include "winnow/error.h"

namespace winnow::cli {

std::vector<std::string> words_of(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';  // otherwise libedit reads past a backslash at the end
  const std::unique_ptr<Tokenizer, decltype(&tok_end)> tokenizer(tok_init(nullptr), tok_end);
  int count = 0;
  const char** words = nullptr;
  switch (tok_str(tokenizer.get(), line.c_str(), &count, &words)) {
    case 0:
      return {words, words + count};
    case 1:
      throw UsageError("a quote ' is not closed: write \\' for the character itself");
    case 2:
      throw UsageError("a quote \" is not closed: write \\\" for the character itself");
    default:
      throw UsageError("a \\ at the end stands for nothing: write \\\\ for the character itself");
  }
}

}  // namespace winnow::cli
