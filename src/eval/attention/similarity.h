// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "eval/attention/observed.h"

namespace winnow::eval {

/// Similarity of the entries of a KV head.
struct Similarity {
  double redundant = 0;  ///< share of entries with an earlier one that is similar
  double keys = 0;       ///< mean cosine of all pairs
  double values = 0;
};

/// Two entries are similar if the product of both cosines reaches `threshold`; a vector of length 0 is similar to none.
/// `keys` and `values` [N][dim]. Works on blocks of rows, so no matrix of all pairs is stored.
Similarity similarity_of(std::span<const float> keys, std::span<const float> values, int dim, double threshold);

/// Keys of a head before RoPE, [N][d], without RoPE's magnitude where it differs between dimensions.
std::vector<float> unrotated_keys(const LayerAttention& layer, int kv_head);

}  // namespace winnow::eval
