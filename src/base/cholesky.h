// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace winnow {

/// The lower triangle of a symmetric matrix [n][n], row by row, with `ridge` added to its diagonal: [n (n + 1) / 2].
template <class T>
std::vector<double> ridged_triangle(std::span<const T> matrix, std::size_t n, double ridge) {
  std::vector<double> out;
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = matrix.subspan(i * n, i + 1);
    out.insert(out.end(), row.begin(), row.end());
    out.back() += ridge;
  }
  return out;
}

/// A symmetric matrix whose eigenvalues are at least `least` > 0, as L L^T with a lower triangle L, in double.
class Cholesky {
 public:
  /// Of the matrix's lower triangle, row by row: [n (n + 1) / 2]. No pivot is less than `least`: one that is has been
  /// rounded, and becomes that.
  Cholesky(std::vector<double> lower, std::size_t n, double least);

  /// The right sides [n][columns] of equations become their solutions.
  void solve(std::span<double> sides, std::size_t columns) const;
  /// The inverse of L, [n][n], a lower triangle.
  std::vector<double> inverse_of_root() const;

 private:
  void forward(std::span<double> sides, std::size_t columns) const;
  void backward(std::span<double> sides, std::size_t columns) const;
  const double* row(std::size_t i) const { return lower_.data() + i * (i + 1) / 2; }

  std::vector<double> lower_;  ///< L, row by row
  std::size_t n_;
};

}  // namespace winnow
