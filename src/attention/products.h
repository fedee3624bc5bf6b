// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/element.h"

namespace winnow::attention {

/// Rows that many others are multiplied with, laid out for it.
class PackedRows {
 public:
  /// `rows` [m][dim].
  PackedRows(std::span<const float> rows, int dim);
  /// The same from `columns` [dim][count]: element c of row i is columns[c][i].
  static PackedRows of_columns(std::span<const float> columns, int count);

  int count() const { return count_; }
  /// Floats from one row of products to the next.
  int stride() const { return stride_; }
  /// out[i][j] = left_i · row_j for `left` [n][dim], out [n][stride()]; sums in f32. What is beyond count() is 0.
  void multiply(std::span<const float> left, std::span<float> out) const;

 private:
  PackedRows(int count, int dim);

  int dim_;
  int count_;
  int stride_;
  std::vector<float> columns_;  ///< [dim][stride]
};

/// Adds the query's product with each row, [rows.count]. REQUIRES: the rows are not quantized.
void add_products(std::span<const float> query, const cache::Rows& rows, std::span<float> out);

/// Cosine of each row with the query, [rows.count]; 0 where either has no length.
void cosines(const cache::Rows& rows, std::span<const float> query, std::span<float> out);
/// The same of each row whose gate is at least `least` in magnitude; of the others 0, or the cosine too.
void cosines_where(std::span<const float> gates, float least, const cache::Rows& rows, std::span<const float> query,
                   std::span<float> out);

}  // namespace winnow::attention
