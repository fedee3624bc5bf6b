// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/grammar_walk.h"
#include "model/vocab.h"
#include "winnow/generate.h"

namespace winnow::engine {

/// Tokens that may come next in an answer: a grammar (GBNF, from its rule `root`), and how far the answer has come. A
/// token without text, such as a control token, never may. Copies share the rules.
class Grammar {
 public:
  /// `end`: whether the end of the sequence may come where the grammar allows it. `vocab` outlives the grammar. Throws
  /// UsageError for a text that is no grammar.
  Grammar(const model::Vocab& vocab, const std::string& text, EndOfSequence end);

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
  /// REQUIRES: allows(token).
  void accept(Token token);

  /// Some milliseconds.
  static constexpr std::int64_t kMostSteps = 400'000;

 private:
  const model::Vocab* vocab_;
  EndOfSequence end_;
  GrammarWalk walk_;
  std::int64_t begun_ = 0;
};

}  // namespace winnow::engine
