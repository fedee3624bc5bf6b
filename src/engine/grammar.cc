// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar.h"

#include <memory>

namespace winnow::engine {

Grammar::Grammar(const model::Vocab& vocab, const std::string& text, EndOfSequence end)
    : vocab_(&vocab), end_(end), walk_(std::make_shared<const GrammarRules>(text)) {}

void Grammar::begin_token() {
  begun_ = walk_.steps();
  walk_.set_limit(begun_ + kMostSteps);
}

bool Grammar::may_begin(Token token) const {
  if (vocab_->ends(token)) return end_ == EndOfSequence::stops && walk_.may_end();
  const auto first = vocab_->first_byte(token);
  return first && walk_.may_begin(*first);
}

bool Grammar::allows(Token token) {
  return may_begin(token) && (vocab_->ends(token) || walk_.allows(vocab_->piece(token)));
}

void Grammar::accept(Token token) {
  if (!vocab_->ends(token)) walk_.accept(vocab_->piece(token));
}

}  // namespace winnow::engine
