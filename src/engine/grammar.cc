// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar.h"

#include <spdlog/fmt/fmt.h>

#include <memory>

#include "winnow/error.h"

namespace winnow::engine {

Grammar::Grammar(const model::Vocab& vocab, const GenerateOptions& options)
    : vocab_(&vocab),
      texts_(vocab, options.preserved_tokens),
      end_(options.end),
      walk_(std::make_shared<const GrammarRules>(options.grammar)) {
  if (!options.grammar_triggers.empty()) {
    trigger_.emplace(options.grammar_triggers);
    return;
  }
  begin_token();
  if (walk_.is_over()) throw UsageError("the grammar has no text: its rules only refer to each other");
  if (!walk_.allows(options.grammar_prefix))
    throw UsageError(fmt::format("the grammar does not begin with its prefix '{}'", options.grammar_prefix));
  walk_.accept(options.grammar_prefix);
}

void Grammar::begin_token() {
  begun_ = walk_.steps();
  walk_.set_limit(begun_ + kMostSteps);
}

bool Grammar::may_begin(Token token) const {
  if (vocab_->ends(token)) return end_ == EndOfSequence::stops && walk_.may_end();
  const auto first = texts_.first_byte(token);
  return first && walk_.may_begin(*first);
}

bool Grammar::allows(Token token) {
  return may_begin(token) && (vocab_->ends(token) || walk_.allows(texts_.of(token)));
}

void Grammar::accept(Token token) {
  if (vocab_->ends(token)) return;
  const std::string text = texts_.of(token);
  if (!trigger_) return walk_.accept(text);
  begin_token();
  const auto begun = trigger_->take(text);
  if (!begun || !walk_.allows(*begun)) return;
  walk_.accept(*begun);
  trigger_.reset();
}

}  // namespace winnow::engine
