// SPDX-License-Identifier: Apache-2.0
#include "eval/measures/steps.h"

#include <algorithm>
#include <cmath>

namespace winnow::eval {

void step(Session& session, std::span<Cache* const> caches, std::span<const Token> tokens,
          std::span<Logits* const> logits) {
  const std::size_t width = logits.front()->size();
  Logits next(width * caches.size());
  session.step(caches, tokens, next);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto from = next.begin() + static_cast<std::ptrdiff_t>(i * width);
    logits[i]->assign(from, from + static_cast<std::ptrdiff_t>(width));
  }
}

void step(Session& session, std::vector<Cache>& caches, Token token, std::vector<Logits>& logits) {
  std::vector<Cache*> all;
  std::vector<Logits*> to;
  for (auto& cache : caches) all.push_back(&cache);
  for (auto& one : logits) to.push_back(&one);
  step(session, all, std::vector(caches.size(), token), to);
}

double log_probability(std::span<const float> logits, Token token) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - most);
  return logits[token] - most - std::log(sum);
}

}  // namespace winnow::eval
