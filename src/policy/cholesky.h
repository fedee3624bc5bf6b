// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace winnow::policy {

/// A symmetric positive definite matrix as U^T U with an upper triangle U, in double.
class Cholesky {
 public:
  /// Of a matrix [n][n], of which the upper triangle is read. One that is not positive definite makes numbers that are
  /// none.
  Cholesky(std::vector<double> matrix, std::size_t n);

  /// The right sides [n][columns] of equations become their solutions.
  void solve(std::span<double> sides, std::size_t columns) const;
  /// The inverse of U^T, [n][n], a lower triangle.
  std::vector<double> inverse_of_root() const;

 private:
  void forward(std::span<double> sides, std::size_t columns) const;
  void backward(std::span<double> sides, std::size_t columns) const;
  double at(std::size_t i, std::size_t j) const { return upper_[i * n_ + j]; }

  std::vector<double> upper_;  ///< [n][n]
  std::size_t n_;
};

}  // namespace winnow::policy
