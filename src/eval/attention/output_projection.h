// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/weights.h"

namespace winnow::eval {

/// A layer's output projection in f32, without its bias, which cancels in distances.
class OutputProjection {
 public:
  OutputProjection(const model::Weights& weights, int layer);

  int width() const { return width_; }
  /// Adds a query head's output [d], projected, to `out` [width].
  void add(int query_head, std::span<const double> output, std::span<double> out) const;
  /// The largest L1 norm of the values [N][d], each projected as this query head's output.
  double largest(int query_head, std::span<const float> values) const;

 private:
  std::vector<float> part(int query_head) const;

  int width_ = 0;
  std::size_t inputs_ = 0;
  std::size_t dim_;
  std::vector<float> rows_;  ///< [width][H_q * d]
};

}  // namespace winnow::eval
