// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "eval/attention/observed.h"

namespace winnow::eval {

/// How alike the entries of a KV head are.
struct Similarity {
  double redundant = 0;  ///< share of entries with an earlier one that is similar
  double keys = 0;       ///< mean cosine of all pairs
  double values = 0;
};

/// Entries are similar when the product of both cosines reaches `threshold`; a vector of length 0 is like none. `keys`
/// and `values` [N][dim]. Blocks of rows are compared at a time: no matrix of all pairs is held.
Similarity similarity_of(std::span<const float> keys, std::span<const float> values, int dim, double threshold);

/// Keys of a head as they were before RoPE, [N][d], without an uneven magnitude of it.
std::vector<float> unrotated_keys(const ObservedLayer& layer, int kv_head);

}  // namespace winnow::eval
