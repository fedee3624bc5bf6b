// SPDX-License-Identifier: Apache-2.0
#include "policy/ridged.h"

#include <gtest/gtest.h>

namespace winnow::policy {
namespace {

constexpr double kRidge = 0.1;
constexpr double kClose = 1e-9;  // condition numbers are below 1e4, and sums have 40 terms

/// A matrix that would be singular without the ridge.
Eigen::MatrixXd matrix_of(int n) {
  std::srand(3);
  const Eigen::MatrixXd rows = Eigen::MatrixXd::Random(n / 2, n);
  return rows.transpose() * rows + kRidge * Eigen::MatrixXd::Identity(n, n);
}

TEST(Ridged, solves_equations) {
  for (const int n : {1, 2, 7, 8, 9, 40}) {
    const auto matrix = matrix_of(n);
    const Eigen::MatrixXd sides = Eigen::MatrixXd::Random(n, 3);
    const Eigen::MatrixXd lower = matrix.triangularView<Eigen::Lower>();
    EXPECT_LT((matrix * Ridged(lower, kRidge).solve(sides) - sides).cwiseAbs().maxCoeff(), kClose) << n;
  }
}

TEST(Ridged, has_the_root_of_the_inverse) {
  const auto matrix = matrix_of(20);
  const auto root = Ridged(matrix, kRidge).inverse_root();
  const auto identity = Eigen::MatrixXd::Identity(20, 20);
  EXPECT_LT((root.transpose() * root * matrix - identity).cwiseAbs().maxCoeff(), kClose);
}

/// Two rows are equal, so the second pivot would be 0.
TEST(Ridged, has_no_pivot_below_the_least_eigenvalue) {
  const auto x = Ridged(Eigen::MatrixXd::Ones(2, 2), 1e-4).solve(Eigen::VectorXd::Ones(2));
  EXPECT_DOUBLE_EQ(x(0), 1);
  EXPECT_DOUBLE_EQ(x(1), 0);
}

}  // namespace
}  // namespace winnow::policy
