// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "eval/random.h"
#include "model/vocab.h"

namespace winnow::eval {

/// The tokens that end an answer, of a vocabulary of so many.
std::vector<Token> ends_of(const model::Vocab& vocab, int n_vocab);

/// A token drawn from the softmax of the logits, in which those of `without` have no part.
Token drawn(std::span<const float> logits, std::span<const Token> without, Random& random);

}  // namespace winnow::eval
