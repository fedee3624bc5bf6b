// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "engine/grammar_trigger.h"
#include "engine/grammar_walk.h"
#include "engine/token_texts.h"
#include "model/vocab.h"
#include "winnow/generate.h"

namespace winnow::engine {

/// Tells which tokens may come next in an answer. It has a grammar (GBNF, from its rule `root`) and its state after the
/// answer so far. A token without text, such as a control token that is not preserved, is never allowed. Copies share
/// the rules.
class Grammar {
 public:
  /// `vocab` outlives the grammar. REQUIRES: the options have a grammar. Throws UsageError for an invalid grammar, for
  /// triggers that are not valid patterns, and for a prefix that the grammar does not allow.
  Grammar(const model::Vocab& vocab, const GenerateOptions& options);

  /// True while no trigger has come, so that all tokens are allowed.
  bool is_waiting() const { return trigger_.has_value(); }
  /// Begins the choice of a token, for which allows() and accept() may take kMostSteps in total.
  void begin_token();
  /// Steps since begin_token().
  std::int64_t steps() const { return walk_.steps() - begun_; }
  /// True if more than half of kMostSteps are used up.
  bool is_impatient() const { return steps() > kMostSteps / 2; }
  /// True if the token's first byte is allowed.
  bool may_begin(Token token) const;
  /// allows() and accept() throw UsageError if there are too many ways to parse the answer.
  bool allows(Token token);
  /// REQUIRES: is_waiting(), or allows(token).
  void accept(Token token);

  /// Limit of steps(): some milliseconds of work.
  static constexpr std::int64_t kMostSteps = 400'000;

 private:
  const model::Vocab* vocab_;
  TokenTexts texts_;
  EndOfSequence end_;
  GrammarWalk walk_;
  std::optional<GrammarTrigger> trigger_;  ///< nullopt once the grammar has begun
  std::int64_t begun_ = 0;
};

}  // namespace winnow::engine
