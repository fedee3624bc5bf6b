// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Cholesky>

namespace winnow::policy {

/// Row-major matrix, as in the rest of the code.
template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The factors L D Lᵀ of a symmetric matrix whose eigenvalues are at least `least` > 0. Smaller pivots are errors of
/// rounding, and become `least`.
class Ridged {
 public:
  /// Reads the lower triangle.
  Ridged(const Eigen::MatrixXd& matrix, double least) : factors_(matrix), pivots_(factors_.vectorD().cwiseMax(least)) {}

  /// Solves for right sides in columns.
  Eigen::MatrixXd solve(const Eigen::MatrixXd& sides) const {
    Eigen::MatrixXd out = factors_.transpositionsP() * sides;
    factors_.matrixL().solveInPlace(out);
    out = pivots_.cwiseInverse().asDiagonal() * out;
    factors_.matrixU().solveInPlace(out);
    return factors_.transpositionsP().transpose() * out;
  }
  /// R with RᵀR = matrix⁻¹.
  Eigen::MatrixXd inverse_root() const {
    Eigen::MatrixXd out = factors_.transpositionsP() * Eigen::MatrixXd::Identity(pivots_.size(), pivots_.size());
    factors_.matrixL().solveInPlace(out);
    return pivots_.cwiseSqrt().cwiseInverse().asDiagonal() * out;
  }

 private:
  Eigen::LDLT<Eigen::MatrixXd> factors_;
  Eigen::VectorXd pivots_;
};

}  // namespace winnow::policy
