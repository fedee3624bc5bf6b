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
///   even    budget, as a share of the prompt, from which on the repetition counts as much as X's scores
///   demand  the same, as a multiple of the repetition's demand; the larger of both budgets counts
///   sharp   least mean attention to the tokens that are repeated; if no head has it, nothing counts. In texts of fewer
///           than 400 tokens it rises in proportion, since chance gives more there.
///   and repetition_options()
std::vector<Option> joined_repetition_options();

/// Makes a method rank entries by the larger of its scores and the attention from a repetition of the prompt: that of
/// the row that repeats the entry's token, or of the row before, which predicts it. The demand of the repetition is the
/// sum of this attention over the entries of a head, on average over the heads that share a budget. The attention is
/// multiplied by (budget / max(`even` · tokens, `demand` · demand))³, but at most by 1, and by 0 if that is below
/// 0.02. If it would be with any demand, nothing is repeated. Entries of a word or chunk all get its score and are then
/// kept one by one. REQUIRES: the method has scores of at least 0, no replay, and no scores of its own while decoding.
void join_repetition(Method& method, const Options& options);

}  // namespace winnow::policy
