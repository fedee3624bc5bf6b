// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/element.h"

namespace winnow::attention {

/// Rows packed for products with many others.
class PackedRows {
 public:
  /// `rows` [m][dim].
  PackedRows(std::span<const float> rows, int dim);
  /// The same from the transposed matrix `columns` [dim][count].
  static PackedRows of_columns(std::span<const float> columns, int count);

  int count() const { return count_; }
  /// Floats between rows of products.
  int stride() const { return stride_; }
  /// out[i][j] = left_i · row_j for `left` [n][dim], out [n][stride()]; f32 sums; 0 beyond count().
  void multiply(std::span<const float> left, std::span<float> out) const;

 private:
  PackedRows(int count, int dim);

  int dim_;
  int count_;
  int stride_;
  std::vector<float> columns_;  ///< [dim][stride]
};

/// Adds the dot products of the query with each row to `out` [rows.count]. REQUIRES: the rows are not quantized.
void add_products(std::span<const float> query, const cache::Rows& rows, std::span<float> out);

/// Cosine similarity of each row and the query, [rows.count]; 0 if either is zero.
void cosines(const cache::Rows& rows, std::span<const float> query, std::span<float> out);
/// The same for rows with |gate| >= `least`. Other rows may get 0 or their cosine.
void cosines_where(std::span<const float> gates, float least, const cache::Rows& rows, std::span<const float> query,
                   std::span<float> out);

}  // namespace winnow::attention
