// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "eval/random.h"
#include "model/vocab.h"

namespace winnow::eval {

/// End-of-generation tokens of a vocabulary of `n_vocab` tokens.
std::vector<Token> ends_of(const model::Vocab& vocab, int n_vocab);

/// Draws a token from the softmax of the logits of all tokens but `without`.
Token drawn(std::span<const float> logits, std::span<const Token> without, Random& random);

}  // namespace winnow::eval
