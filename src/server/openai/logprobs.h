// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "server/json.h"
#include "winnow/generate.h"
#include "winnow/model.h"

namespace winnow::server {

/// Log probabilities in the format of chats: `{"content": [{"token", "logprob", "bytes", "top_logprobs"}]}`.
Json chat_logprobs(std::span<const GeneratedToken> tokens, int alternatives, const Model& model);

/// The format of completions: `{"tokens", "token_logprobs", "top_logprobs", "text_offset"}`. `offset` is that of the
/// first token in characters of the answer, and becomes that of the next.
Json completion_logprobs(std::span<const GeneratedToken> tokens, int alternatives, const Model& model,
                         std::size_t& offset);

/// The same for a prompt and its answer: the prompt's first token has null, since its probability is unknown.
Json echoed_logprobs(Token first, std::span<const GeneratedToken> others, int alternatives, const Model& model);

}  // namespace winnow::server
