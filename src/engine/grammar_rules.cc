// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_rules.h"

#include "engine/grammar_parser.h"

namespace winnow::engine {

GrammarRules::GrammarRules(std::string_view text) {
  GrammarBuilder builder(states_, begins_);
  root_ = parse_grammar(text, builder);
}

}  // namespace winnow::engine
