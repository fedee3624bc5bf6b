// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "engine/sampler.h"
#include "winnow/scheduler.h"

namespace winnow::test {

/// Number of likeliest tokens whose probabilities are compared, for each token of an answer.
constexpr int kLogprobs = 3;

/// Result of a request.
struct Answer {
  std::vector<Token> tokens;
  std::vector<double> logprobs;
  std::vector<std::vector<std::vector<std::int32_t>>> kept;

  bool operator==(const Answer&) const = default;
};

/// Appends the likeliest token.
inline void add_greedy(std::span<const float> logits, Answer& to) {
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  const auto token = engine::log_probabilities(logits, static_cast<Token>(best), kLogprobs);
  to.tokens.push_back(token.chosen.id);
  for (const auto& top : token.top) to.logprobs.push_back(top.logprob);
}

/// The answer of `tokens` tokens by the session's own steps, after a prompt with this cache and these logits.
inline Answer greedy_answer(Session& session, Cache& cache, std::vector<float> logits, int tokens) {
  Answer out;
  add_greedy(logits, out);
  while (static_cast<int>(out.tokens.size()) < tokens) {
    Cache* const one = &cache;
    session.step(std::span(&one, 1), std::span(&out.tokens.back(), 1), logits);
    add_greedy(logits, out);
  }
  out.kept = cache.kept();
  return out;
}

/// The first answer of a request for one cache. Throws the request's error.
inline Answer answer_of(const RequestEnd& end) {
  if (end.error) std::rethrow_exception(end.error);
  Answer out;
  out.tokens = end.answers.front().tokens;
  for (const auto& token : end.answers.front().logprobs) {
    for (const auto& top : token.top) out.logprobs.push_back(top.logprob);
  }
  out.kept = end.caches.front().kept();
  return out;
}

}  // namespace winnow::test
