// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "eval/measures/measure.h"

/// Measures of a prompt's attention, and of the part of it that caches keep. The prompt is read once more with the full
/// cache, which shows the queries and keys of each layer. Layers with windows are left out. Unless stated otherwise, a
/// series has one number for each query head or KV head of each layer, in layer order. docs/tasks.md has the formulas.
/// Timings are set by the tasks.
namespace winnow::eval {

/// Concentration of the attention of the last 32 queries (Feng et al. 2024, Ada-KV, figures 3 and 9). The score is the
/// share that the entries of a cache get, mean over query heads. Values: "best", the largest share that a cache of this
/// size could get; "mass@X" for X = 1, 5, 10, 20, 50, the share of the best X % of all entries. Series: "kept_mass",
/// "mass@X".
Measure concentrating();

/// Change of the attention output by eviction, and Ada-KV's bound on it (theorems 1 and 2, figure 4), for the queries
/// of `answer` tokens that the full cache generates. REQUIRES: the first cache is the full one. The score is the share
/// of attention that kept entries get. Values: "loss", the L1 distance of a layer's output from its output with all
/// entries, mean over queries and layers; "relative_loss", in units of that output's L1 norm; "bound". Series, by
/// layer: "loss", "bound". Kept entries are those of the cache after the prompt, with their original keys and values.
Measure losing(int answer);

/// Positions that a cache keeps (EMS, figures 2, 8 and 9; AhaKV, figures 2c, 5 and 6). The score is the share of kept
/// entries in the prompt's second half. Values: "position", their mean relative position, 0 … 1; "window", "local" and
/// "global", their shares by the origin of EMS's score: in the last 32 tokens, from the last queries, from all queries.
/// Series: "kept L.H", the positions that KV head H of layer L keeps; "parts", the share of all kept entries in each of
/// 32 equal parts of the prompt.
Measure keeping();

/// Similarity of the keys and values of each KV head, and the number of entries that matter (EMS, equations 3 and 4,
/// figure 4). The score is the share of redundant entries. An entry is redundant if, with an earlier entry, the cosine
/// of the keys before RoPE times the cosine of the values is at least 0.6. Values: "sparsity", the share of entries
/// that are not needed for 95 % of the global-local score; "key_similarity", "value_similarity", mean cosines of all
/// pairs. Series: the same names, and "redundancy".
Measure repeating();

/// Four scores of entries by position (AhaKV, figure 2). "all": attention summed over all queries, as in H2O. "recent":
/// over the last 32 queries. "gain": the same with AhaKV's gain in the softmax, for the cache's budget. "prior": the
/// same with the prior from values. The score of the measure is the share of "prior" in the prompt's second half.
/// Values: "all", "recent", "gain", that share of the other three; "retained" and "retained_prior", the share of
/// entries with at least a hundredth of the head's largest "gain" or "prior". Series: "all", "recent", "gain", "prior":
/// the mean score in each of 32 parts of the prompt, in units of the head's mean; "retained", "retained_prior": for a
/// tenth, a hundredth, … of the largest.
Measure scoring();

/// Decline, with distance, of the attention to the representatives of a prompt's middle blocks (SamKV, figures 7 and
/// 8). The prompt is read as one document. A layer is stable if it singles out the block that matters most over all
/// layers. The score is the share of stable layers. Values: "stable_late", their share among the last layers, which
/// choose blocks in the paper; "stable_early", their share among the layers before. Means over layers: "exponent", over
/// all blocks; "exponent_first" and "exponent_last", the smallest and the largest exponent; "attention_first" and
/// "attention_last", the attention of a later token to the representatives of the two blocks with these exponents;
/// "explained", "explained_first" and "explained_last", the share of the logarithms' variance that the power laws
/// explain. Series: "stable", 0 or 1 by layer; "exponents" and "attention" by rank of the exponent; "first", "last",
/// "first_law" and "last_law": the decimal logarithm of the same two blocks' attention at distances of 1, 2 to 3, 4 to
/// 7, …, and of its power law. Skips a prompt in which no block can stand out.
Measure representing();

/// Kept positions of all caches, [cache][layer][KV head].
using AllKept = std::vector<std::vector<std::vector<std::vector<std::int32_t>>>>;
AllKept kept_by(const std::vector<Cache>& caches);

/// The tokens of a whole prompt.
std::vector<Token> tokens_of(const TokenizedSample& tokenized);

}  // namespace winnow::eval
