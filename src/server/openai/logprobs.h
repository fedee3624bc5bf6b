// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "server/json.h"
#include "winnow/generate.h"
#include "winnow/model.h"

namespace winnow::server {

/// Log probabilities in a chat's form: `{"content": [{"token", "logprob", "bytes", "top_logprobs"}]}`.
Json chat_logprobs(std::span<const GeneratedToken> tokens, int alternatives, const Model& model);

/// In the older form: `{"tokens", "token_logprobs", "top_logprobs", "text_offset"}`. The first token begins at this
/// character of the answer, which becomes where the next one does.
Json completion_logprobs(std::span<const GeneratedToken> tokens, int alternatives, const Model& model,
                         std::size_t& offset);

/// The older form for a prompt and its answer: nothing is known of the prompt's first token, null stands for that.
Json echoed_logprobs(Token first, std::span<const GeneratedToken> others, int alternatives, const Model& model);

}  // namespace winnow::server
