// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rope.h"
#include "base/worker.h"

namespace winnow::attention {

/// Mean and covariance of a layer's queries before RoPE, for each query head, as an estimate of later queries.
class QueryMoments {
 public:
  /// Skips queries at positions below `first`: those of the first tokens are unlike the others.
  QueryMoments(int query_heads, int head_dim, const Rope& rope, int first);
  static std::size_t bytes(int query_heads, int head_dim);

  /// Adds rows of rotated queries [rows][H_q][d]; each member of a team takes some heads.
  void add(const float* q, std::span<const std::int32_t> positions, Worker worker);

  /// Numbers of a head's state.
  static std::size_t state_size(int head_dim);
  /// Continues from the state that was written when only earlier rows had been added.
  void take_state(int head, std::span<const double> state);
  void write_state(int head, std::span<double> state) const;

  /// Mean over the rows, [d]; zeros without rows.
  std::vector<double> mean(int head) const;
  /// Covariance, [d][d], divided by the number of rows.
  std::vector<double> covariance(int head) const;

 private:
  /// `back` has the angles that un-rotate each row.
  void add_head(const float* q, std::span<const std::int32_t> positions, const float* back, int head);

  int heads_;
  int dim_;
  const Rope* rope_;
  int first_;
  std::vector<double> count_;     ///< [H_q]
  std::vector<double> sums_;      ///< [H_q][d]
  std::vector<double> products_;  ///< [H_q][d][d]; only those above the diagonal are read
};

}  // namespace winnow::attention
