// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::chat {

/// GBNF grammar that accepts the texts of either grammar.
std::string either_grammar(const std::string& first, const std::string& second);

}  // namespace winnow::chat
