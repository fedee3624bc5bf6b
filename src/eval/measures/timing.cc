// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/as_size.h"
#include "base/clock.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

constexpr int kSteps = 64;
constexpr int kBatch = 8;

/// Tokens per second of all sequences together. They read the prompt's tokens, from its beginning.
double decode_rate(Session& session, std::vector<Cache>& caches, const std::vector<Token>& tokens,
                   const Logits& logits) {
  std::vector all(caches.size(), logits);
  const auto begin = Clock::now();
  for (int i = 0; i < kSteps; ++i) step(session, caches, tokens[as_size(i) % tokens.size()], all);
  return 1000 * static_cast<double>(caches.size()) * kSteps / ms_since(begin);
}

}  // namespace

Measure timing() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
            const std::vector<Logits>& logits) {
    Record out;
    const auto& tokens = tokenized.prompt.text.empty() ? tokenized.prompt.question : tokenized.prompt.text;
    const auto stats = caches.front().stats();
    out.values["ttft_ms"] = tokenized.read_ms;
    out.values["peak_bytes"] = static_cast<double>(session.memory().peak);
    std::vector<Cache> batch;
    for (int i = 0; i < kBatch; ++i) batch.push_back(caches.front().clone());
    const auto begin = Clock::now();
    out.values["decode_tps"] = decode_rate(session, caches, tokens, logits.front());
    out.values["decode_tps_8"] = decode_rate(session, batch, tokens, logits.front());
    out.timings.decode_ms = ms_since(begin);
    out.score = std::max(0.0, 1 - static_cast<double>(stats.bytes_held) / static_cast<double>(stats.bytes_full));
    return std::vector{out};
  };
}

}  // namespace winnow::eval
