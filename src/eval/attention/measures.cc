// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/measures.h"

namespace winnow::eval {

AllKept kept_by(const std::vector<Cache>& caches) {
  AllKept out;
  for (const auto& cache : caches) out.push_back(cache.kept());
  return out;
}

std::vector<Token> tokens_of(const TokenizedSample& tokenized) {
  std::vector<Token> out = tokenized.prompt.text;
  out.insert(out.end(), tokenized.prompt.question.begin(), tokenized.prompt.question.end());
  return out;
}

}  // namespace winnow::eval
