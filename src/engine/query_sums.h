// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rope.h"
#include "winnow/policy/method.h"

namespace winnow::engine {

/// Sums of a layer's queries before RoPE.
class QuerySums {
 public:
  QuerySums(int query_heads, int head_dim);

  /// Adds queries [n][H_q][d] that are rotated to positions [n].
  void add(std::span<const float> queries, std::span<const std::int32_t> positions, const Rope& rope);
  /// REQUIRES: some queries.
  policy::QueryStatistics statistics() const;

 private:
  std::size_t heads_;
  std::size_t dim_;
  double count_ = 0;
  std::vector<double> sums_;         ///< [H_q][d]
  std::vector<double> length_sums_;  ///< [H_q][d / 2]
};

}  // namespace winnow::engine
