// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/clock.h"
#include "eval/measures/distance.h"
#include "eval/measures/drawing.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

constexpr int kFirstSpan = 64;  // tokens; each later span ends where the answer is twice as long

/// Distances of one cache from the full one so far.
struct Course {
  Distance all;
  Distance before;  ///< when the last span ended

  double end_span() {
    const double mean = (all.divergence - before.divergence) / (all.steps - before.steps);
    before = all;
    return mean;
  }
};

/// Compares the caches that predicted the token at `step` from the entries that they keep.
void compare(const std::vector<Logits>& logits, const TokenizedSample& tokenized, int step,
             std::vector<Course>& courses) {
  const Reference full(logits.front());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (step > 0 || tokenized.first_tokens[i] == FirstToken::what_is_kept) full.compare(logits[i], courses[i].all);
  }
}

/// The answer's tokens, one after the other.
class Answer {
 public:
  Answer(const Model& model, const Sample& sample, const ForcedAnswer& answer)
      : is_drawn_(answer.tokens == ForcedAnswer::Tokens::drawn), random_(sample.seed, sample.prompt.text, 0) {
    if (is_drawn_) ends_ = ends_of(model);
  }

  Token next(const Logits& full) { return is_drawn_ ? drawn(full, ends_, random_) : static_cast<Token>(best(full)); }

 private:
  bool is_drawn_;
  Random random_;
  std::vector<Token> ends_;
};

}  // namespace

Measure agreeing(const ForcedAnswer& answer) {
  return [answer](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                  std::vector<Logits> logits) {
    Answer tokens(session.model(), *tokenized.sample, answer);
    std::vector<Course> courses(caches.size());
    std::vector<Record> out(caches.size());
    int span_end = answer.length > kFirstSpan ? kFirstSpan : 0;
    const auto begin = Clock::now();
    for (int i = 0; i < answer.length; ++i) {
      compare(logits, tokenized, i, courses);
      if (i + 1 == span_end) {
        for (std::size_t c = 0; c < out.size(); ++c)
          out[c].values[fmt::format("kl@{}", span_end)] = courses[c].end_span();
        span_end = std::min(2 * span_end, answer.length);
      }
      step(session, caches, tokens.next(logits.front()), logits);
    }
    const double decode_ms = ms_since(begin);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Distance& all = courses[i].all;
      out[i].score = static_cast<double>(all.agreed) / all.steps;
      out[i].values["kl"] = all.divergence / all.steps;
      out[i].timings.decode_ms = decode_ms;
    }
    return out;
  };
}

}  // namespace winnow::eval
