// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::chat {

/// A grammar in GBNF of the texts of either of two.
std::string either_grammar(const std::string& first, const std::string& second);

}  // namespace winnow::chat
