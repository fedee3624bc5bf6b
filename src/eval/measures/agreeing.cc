// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "eval/measures/distance.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

constexpr int kSteps = 64;

/// Compares those that have predicted the token at `step` with what they keep.
void compare(const std::vector<Logits>& logits, const TokenizedSample& tokenized, int step,
             std::vector<Distance>& distances) {
  const Reference full(logits.front());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (step > 0 || tokenized.first_tokens[i] == FirstToken::what_is_kept) full.compare(logits[i], distances[i]);
  }
}

}  // namespace

Measure agreeing() {
  return
      [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches, std::vector<Logits> logits) {
        std::vector<Distance> distances(caches.size());
        const auto begin = Clock::now();
        for (int i = 0; i < kSteps; ++i) {
          compare(logits, tokenized, i, distances);
          step(session, caches, static_cast<Token>(best(logits.front())), logits);
        }
        const double decode_ms = ms_since(begin);
        std::vector<Record> out(caches.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
          out[i].score = static_cast<double>(distances[i].agreed) / distances[i].steps;
          out[i].values["kl"] = distances[i].divergence / distances[i].steps;
          out[i].timings.decode_ms = decode_ms;
        }
        return out;
      };
}

}  // namespace winnow::eval
