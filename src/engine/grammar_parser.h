// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/grammar_builder.h"

namespace winnow::engine {

/// Parses GBNF and builds its rules. Returns the rule `root`. Throws UsageError with the line of a mistake.
std::int32_t parse_grammar(std::string_view text, GrammarBuilder& builder);

}  // namespace winnow::engine
