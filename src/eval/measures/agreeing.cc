// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "eval/measures/distance.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

constexpr int kSteps = 64;

void compare(const std::vector<Logits>& logits, std::vector<Distance>& distances) {
  const Reference full(logits.front());
  for (std::size_t i = 0; i < logits.size(); ++i) full.compare(logits[i], distances[i]);
}

}  // namespace

Measure agreeing() {
  return
      [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches, std::vector<Logits> logits) {
        std::vector<Distance> distances(caches.size());
        const auto begin = Clock::now();
        for (int i = 0; i < kSteps; ++i) {
          // With the question-aware protocol full attention predicts the first token, whatever the method.
          if (i > 0 || tokenized.protocol == Protocol::agnostic) compare(logits, distances);
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
