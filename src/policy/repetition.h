// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// What the model looks at when it repeats the prompt (Kim et al., 2025, "KVzip: Query-Agnostic KV Cache Compression
/// with Context Reconstruction", section 3).
namespace winnow::policy {

/// How many tokens are repeated together: `chunk`.
Option repetition_option();

/// The prompt, repeated chunk by chunk. Each chunk is the reply to a request. Those after the first are told by the
/// tokens before them. Recorded is the largest attention that a token gets from the request for its chunk and from the
/// reply. `options` has the one of repetition_option().
std::function<Replay(const LayerPrompt&, int budget)> repetition(const Options& options, attention::RowScale scale);
/// The words of `winnow methods` for it.
std::string repetition_text(const Options& options);

/// winnow's own: kvzip(X).
///   even   share of the prompt from which on the repetition counts as much as X's scores
///   chunk  tokens that are repeated together
std::vector<Option> joined_repetition_options();

/// Lets a method rank entries by its scores or by attention from the repetition of the prompt, by what is more. That
/// attention is multiplied by the cube of the budget's share of the prompt over `even`, but at most by 1. Where this is
/// less than 0.02, nothing is repeated. Entries of a word or chunk all get its score, and are then kept one by one.
/// REQUIRES: the method ranks entries by scores that are at least 0, reads nothing again, and does not hold scores of
/// its own while decoding.
void join_repetition(Method& method, const Options& options);

}  // namespace winnow::policy
