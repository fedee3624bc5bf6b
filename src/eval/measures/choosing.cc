// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

/// One choice, read after one cache.
struct OfferedLine {
  Cache cache;
  Logits logits;
  const std::vector<Token>& tokens;
  std::size_t given;  ///< tokens that do not count
  double log_p = 0;
};

struct Tokenised {
  std::vector<Token> tokens;
  std::size_t given = 0;
};

std::vector<Tokenised> tokenised(const Model& model, const std::vector<Choice>& choices) {
  std::vector<Tokenised> out;
  for (const auto& choice : choices) {
    auto tokens = model.vocab().tokenize(choice.given);
    const std::size_t given = tokens.size();
    const auto scored = model.vocab().tokenize(choice.scored);
    tokens.insert(tokens.end(), scored.begin(), scored.end());
    out.push_back({std::move(tokens), given});
  }
  return out;
}

/// Adds the likelihood of token `t` of every line that has one, and reads the token unless it is the last.
void advance(Session& session, std::vector<OfferedLine>& lines, std::size_t t) {
  std::vector<Cache*> caches;
  std::vector<Token> tokens;
  std::vector<Logits*> logits;
  for (auto& line : lines) {
    if (t >= line.tokens.size()) continue;
    if (t >= line.given) line.log_p += log_probability(line.logits, line.tokens[t]);
    if (t + 1 == line.tokens.size()) continue;
    caches.push_back(&line.cache);
    tokens.push_back(line.tokens[t]);
    logits.push_back(&line.logits);
  }
  if (!caches.empty()) step(session, caches, tokens, logits);
}

double likelihood_of(const OfferedLine& line, Likelihood likelihood) {
  const auto scored = static_cast<double>(line.tokens.size() - line.given);
  return likelihood == Likelihood::sum ? line.log_p : line.log_p / std::max(1.0, scored);
}

}  // namespace

Measure choosing(Likelihood likelihood) {
  return [likelihood](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                      const std::vector<Logits>& logits) {
    const auto& choices = tokenized.sample->choices;
    const auto texts = tokenised(session.model(), choices);
    const auto begin = Clock::now();
    std::vector<OfferedLine> lines;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      for (const auto& text : texts) {
        lines.push_back({caches[i].clone(), logits[i], text.tokens, text.given});
        longest = std::max(longest, text.tokens.size());
      }
    }
    for (std::size_t t = 0; t < longest; ++t) advance(session, lines, t);
    const double decode_ms = ms_since(begin);
    std::vector<Record> out(caches.size());
    for (std::size_t i = 0; i < caches.size(); ++i) {
      double most = -std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < choices.size(); ++c) {
        const double found = likelihood_of(lines[i * choices.size() + c], likelihood);
        if (found <= most) continue;
        most = found;
        out[i].answer = choices[c].name;
      }
      out[i].score = out[i].answer == tokenized.sample->references.front() ? 1 : 0;
      out[i].timings.decode_ms = decode_ms;
    }
    return out;
  };
}

}  // namespace winnow::eval
