// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "eval/measures/measure.h"

/// Measures of a prompt's attention, and of what caches keep of it. The prompt is read once more with the full cache,
/// and the queries and keys of each layer are observed. Layers with windows are left out. Unless stated otherwise, a
/// series has one number for each query head or KV head of each layer, in layer order. docs/tasks.md has the formulas.
/// The tasks measure the time.
namespace winnow::eval {

/// Concentration of the attention of the last 32 queries (Feng et al. 2024, Ada-KV, figures 3 and 9). The score is the
/// share that goes to a cache's entries, the mean over query heads. Values: "best", the share of equally many best
/// entries; "mass@X" for X = 1, 5, 10, 20, 50, the share of the best X % of all entries. Series: "kept_mass", "mass@X".
Measure concentrating();

/// Change of attention's output by eviction, and Ada-KV's bound of it (theorems 1 and 2, figure 4), for the queries of
/// `answer` tokens that the full cache generates. The first cache is the full one. The score is the share of attention
/// that goes to kept entries. Values: "loss", the L1 distance of a layer's output to that with all entries, the mean
/// over queries and layers; "relative_loss", in units of that output's L1 norm; "bound". Series, by layer: "loss",
/// "bound". Kept entries are those of the cache after the prompt, with their original keys and values.
Measure losing(int answer);

/// Positions that a cache keeps (EMS, figures 2, 8 and 9; AhaKV, figures 2c, 5 and 6). The score is the share of kept
/// entries in the prompt's second half. Values: "position", their mean place in the prompt, 0 … 1; "window", "local"
/// and "global", their shares by the origin of EMS's score: the last 32 tokens, the last queries, all queries. Series:
/// "kept L.H", the positions that KV head H of layer L keeps; "parts", the share of all kept entries in each of 32
/// equal parts of the prompt.
Measure keeping();

/// Similarity of the keys and values of each KV head, and the number of entries that matter (EMS, equations 3 and 4,
/// figure 4). The score is the share of redundant entries: those with an earlier entry for which the cosine of the
/// keys, before RoPE, times the cosine of the values reaches 0.6. Values: "sparsity", the share of entries that are not
/// needed for 95 % of the global-local score; "key_similarity", "value_similarity", mean cosines of all pairs. Series:
/// the same names, and "redundancy".
Measure repeating();

/// Scores by position (AhaKV, figure 2): accumulated over all queries as in H2O; over the last 32; over these with the
/// gain of the cache's budget in the softmax; and this last one with the prior from values. The score is the share of
/// that one in the prompt's second half. Values: the same share of the others, "all", "recent" and "gain"; "retained"
/// and "retained_prior": the share of entries whose score is at least a hundredth of the head's largest, without and
/// with the prior. Series: "all", "recent", "gain", "prior": the mean score in each of 32 parts of the prompt, in units
/// of the head's mean; "retained", "retained_prior": for a tenth, a hundredth, … of the largest.
Measure scoring();

/// Decline of attention to the representatives of a prompt's middle blocks with the distance, and the layers that
/// single out the block that matters most over all layers (SamKV, figures 7 and 8). The prompt is read as one document.
/// The score is the share of such layers. Values: "stable_late" and "stable_early", that share of the last layers, as
/// many as the paper lets decide, and of those before them. Means over layers: "exponent", of all blocks;
/// "exponent_first" and "exponent_last", the smallest and the largest; "attention_first" and "attention_last", the
/// attention of each later token to the representatives of these two blocks; "explained", "explained_first" and
/// "explained_last", the share of the logarithms' variance that the power laws explain. Series: "stable", 0 or 1 by
/// layer; "exponents" and "attention" by rank of the exponent; "first", "last", "first_law" and "last_law": the decimal
/// logarithm of the same two blocks' attention at distances of 1, 2 to 3, 4 to 7, …, and of its power law. Skips a
/// prompt in which no block can stand out.
Measure representing();

/// Kept positions of all caches, [cache][layer][KV head].
using AllKept = std::vector<std::vector<std::vector<std::vector<std::int32_t>>>>;
AllKept kept_by(const std::vector<Cache>& caches);

/// The tokens of a whole prompt.
std::vector<Token> tokens_of(const TokenizedSample& tokenized);

}  // namespace winnow::eval
