// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "eval/measures/measure.h"

/// What the attention of a prompt is like, and what caches keep of it. The prompt is read once more with the full
/// cache, whose queries and keys are looked at layer by layer. Layers with windows are left out. Series have one number
/// for each query head or KV head of each layer, layer by layer, unless something else is said. docs/tasks.md has the
/// formulas. The tasks take the time.
namespace winnow::eval {

/// How concentrated the attention of the last 32 queries is (Feng et al. 2024, Ada-KV, figures 3 and 9). The score is
/// the share of it that goes to what a cache keeps, the mean over query heads. Values: "best", the share of as many
/// best entries; "mass@X" for X = 1, 5, 10, 20, 50: that of the best X % of all entries. Series: "kept_mass", "mass@X".
Measure concentrating();

/// What eviction does to the output of attention, and Ada-KV's bound of it (theorems 1 and 2, figure 4), for the
/// queries of `answer` tokens that the full cache generates. The first cache is the full one. The score is the share of
/// attention that goes to what is kept. Values: "loss", the L1 distance of a layer's output to that with all entries,
/// the mean over queries and layers; "relative_loss", in units of that output's L1 norm; "bound". Series, by layer:
/// "loss", "bound". What is kept is what a cache has when the prompt has been read, with keys and values as they were.
Measure losing(int answer);

/// Which positions a cache keeps (EMS, figures 2, 8 and 9; AhaKV, figures 2c, 5 and 6). The score is the share of the
/// kept entries that stand in the prompt's second half. Values: "position", their mean place in the prompt, 0 … 1;
/// "window", "local" and "global", by what EMS's score of these entries comes from: the last 32 tokens, the last
/// queries, all queries. Series: "kept L.H", the positions that KV head H of layer L keeps; "parts", the share of all
/// kept entries in each of 32 equal parts of the prompt.
Measure keeping();

/// How alike keys and values are, and how few entries matter (EMS, equations 3 and 4, figure 4), of each KV head. The
/// score is the share of entries that are redundant: an earlier one is so similar that the product of the cosines of
/// keys, before RoPE, and of values reaches 0.6. Values: "sparsity", the share of entries that are not needed for 95 %
/// of the global-local score; "key_similarity", "value_similarity", mean cosines of all pairs. Series: the same names,
/// and "redundancy".
Measure repeating();

/// Scores by position (AhaKV, figure 2): accumulated over all queries as in H2O, over the last 32, the same by a
/// softmax with the gain of the cache's budget, the same with the prior from values. The score is the share of the last
/// one in the prompt's second half. Values: that share of each of the others, "all", "recent" and "gain"; "retained"
/// and "retained_prior": the share of entries whose score is a hundredth of the head's largest at least, without and
/// with the prior. Series: "all", "recent", "gain", "prior": the mean score in each of 32 parts of the prompt, in units
/// of the head's mean; "retained", "retained_prior": for a tenth, a hundredth, … of the largest.
Measure scoring();

/// How attention to the representatives of a prompt's middle blocks falls off, the prompt being read as a document on
/// its own, and which layers single out the block that matters most in all of them (SamKV, figures 7 and 8). The score
/// is the share of such layers. Values: "stable_late" and "stable_early", that share of the last layers, as many as
/// decide by the paper, and of those before them; means over layers: "exponent", of all blocks, "exponent_first" and
/// "exponent_last", the smallest and the largest, "attention_first" and "attention_last", what the representatives of
/// these two blocks get from each later token; "explained", "explained_first" and "explained_last", the share of the
/// variance of the logarithms that the power laws explain. Series: "stable", 0 or 1 by layer; "exponents" and
/// "attention" by rank of the exponent; "first", "last", "first_law" and "last_law": the decimal logarithm of the same
/// two blocks' attention at distances of 1, 2 to 3, 4 to 7, …, and of its power law. A prompt in which no block can
/// stand out is skipped.
Measure representing();

/// What of the caches' contents measures look at: positions, [cache][layer][KV head].
using AllKept = std::vector<std::vector<std::vector<std::vector<std::int32_t>>>>;
AllKept kept_by(const std::vector<Cache>& caches);

/// The tokens of a whole prompt.
std::vector<Token> tokens_of(const TokenizedSample& tokenized);

}  // namespace winnow::eval
