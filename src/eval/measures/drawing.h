// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "eval/random.h"
#include "winnow/model.h"

namespace winnow::eval {

/// End-of-generation tokens of a vocabulary.
std::vector<Token> ends_of(const Model& model);

/// Draws a token from the softmax of the logits of all tokens but `without`.
Token drawn(std::span<const float> logits, std::span<const Token> without, Random& random);

}  // namespace winnow::eval
