// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/vocab.h"
#include "winnow/policy/method.h"

/// Tokens of passages that are replayed after a prompt.
namespace winnow::engine {

/// Tokens of a passage of `prompt`, with the tokens of `draft` that it repeats.
std::vector<Token> tokens_of(const policy::Passage& passage, std::span<const Token> prompt,
                             std::span<const Token> draft, const model::Vocab& vocab);

/// Number of tokens of a passage before the copy of prompt tokens [first, first + count).
int rows_before_copy(const policy::Passage& passage, const model::Vocab& vocab);

/// Number of tokens of a passage.
int rows_of(const policy::Passage& passage, std::span<const Token> draft, const model::Vocab& vocab);

}  // namespace winnow::engine
