// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "base/as_size.h"
#include "base/clock.h"
#include "eval/measures/distance.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

/// Likelihoods of the tokens so far, with one cache.
struct ForcedTally {
  double nll = 0;
  double nll_before = 0;  ///< when the last span ended
  int hits = 0;
  int tokens = 0;
  int tokens_before = 0;

  void add(const Logits& logits, Token token) {
    nll -= log_probability(logits, token);
    hits += best(logits) == as_size(token) ? 1 : 0;
    ++tokens;
  }

  double end_span() {
    const double mean = (nll - nll_before) / (tokens - tokens_before);
    nll_before = nll;
    tokens_before = tokens;
    return mean;
  }
};

}  // namespace

Measure teacher_forcing(int every) {
  return [every](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                 std::vector<Logits> logits) {
    const auto tokens = session.model().vocab().tokenize(tokenized.sample->references.front());
    std::vector<ForcedTally> tallies(caches.size());
    std::vector<Record> out(caches.size());
    const auto begin = Clock::now();
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
      step(session, caches, tokens[t], logits);
      const bool ends_span = every > 0 && (t + 2) % as_size(every) == 0;
      for (std::size_t i = 0; i < caches.size(); ++i) {
        tallies[i].add(logits[i], tokens[t + 1]);
        if (ends_span) out[i].values[fmt::format("nll@{}", t + 2)] = tallies[i].end_span();
      }
    }
    const double decode_ms = ms_since(begin);
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const double count = std::max(1, tallies[i].tokens);
      out[i].score = tallies[i].hits / count;
      out[i].values["nll"] = tallies[i].nll / count;
      out[i].values["perplexity"] = std::exp(tallies[i].nll / count);
      out[i].timings.decode_ms = decode_ms;
    }
    return out;
  };
}

}  // namespace winnow::eval
