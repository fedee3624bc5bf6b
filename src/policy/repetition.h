// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// Attention of the model while it repeats the prompt (Kim et al., 2025, "KVzip: Query-Agnostic KV Cache Compression
/// with Context Reconstruction", section 3).
namespace winnow::policy {

/// Options of a repetition:
///   chunk  number of tokens that are repeated together
///   after  text: all chunks are repeated after the whole text, as in the paper; chunk: each as soon as it is read, so
///          that its scores depend on the text up to its end only
std::vector<Option> repetition_options();

/// Replays the prompt chunk by chunk. Each chunk is the reply to a request to repeat it; requests after the first name
/// the chunk by the tokens before it. The result is the largest attention that a token gets from the request for its
/// chunk and from the reply. `options` has repetition_options().
std::function<Replay(const LayerPrompt&, int budget)> repetition(const Options& options, attention::RowScale scale);
/// Text of `winnow methods` for it.
std::string repetition_text(const Options& options);

/// Options of kvzip(X), which is winnow's own:
///   even   budget, as a share of the prompt, from which on the repetition counts as much as X's scores
///   and repetition_options()
std::vector<Option> joined_repetition_options();

/// Makes a method rank entries by the larger of its scores and the attention from a repetition of the prompt. That
/// attention is multiplied by ((budget / tokens) / `even`)³, but at most by 1. Below 0.02 nothing is repeated. Entries
/// of a word or chunk all get its score and are then kept one by one. REQUIRES: the method has scores of at least 0, no
/// replay, and no scores of its own while decoding.
void join_repetition(Method& method, const Options& options);

}  // namespace winnow::policy
