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

/// Tokens that may come next in an answer: a grammar (GBNF, from its rule `root`), and how far the answer has come. A
/// token without text, such as a control token that is not preserved, never may. Copies share the rules.
class Grammar {
 public:
  /// `vocab` outlives the grammar. REQUIRES: the options have one. Throws UsageError for a text that is no grammar, for
  /// triggers that are no patterns, and for a prefix that it does not begin with.
  Grammar(const model::Vocab& vocab, const GenerateOptions& options);

  /// Whether all tokens may come, since no trigger has come yet.
  bool is_waiting() const { return trigger_.has_value(); }
  /// A token is to be chosen: from here on, allows() and accept() may take kMostSteps.
  void begin_token();
  /// Steps since then.
  std::int64_t steps() const { return walk_.steps() - begun_; }
  /// Half of them are gone.
  bool is_impatient() const { return steps() > kMostSteps / 2; }
  /// Whether a token may come as far as its first byte says.
  bool may_begin(Token token) const;
  /// This and accept() throw UsageError when there are too many ways to read the answer.
  bool allows(Token token);
  /// REQUIRES: is_waiting(), or allows(token).
  void accept(Token token);

  /// Some milliseconds.
  static constexpr std::int64_t kMostSteps = 400'000;

 private:
  const model::Vocab* vocab_;
  TokenTexts texts_;
  EndOfSequence end_;
  GrammarWalk walk_;
  std::optional<GrammarTrigger> trigger_;  ///< none: the grammar has begun
  std::int64_t begun_ = 0;
};

}  // namespace winnow::engine
