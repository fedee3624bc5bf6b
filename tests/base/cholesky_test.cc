// SPDX-License-Identifier: Apache-2.0
#include "base/cholesky.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace winnow {
namespace {

/// B^T B + ridge, [n][n], with fewer rows in B than n, so that without the ridge it would be singular.
std::vector<double> matrix_of(std::size_t n, double ridge, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(n * n);
  for (std::size_t i = 0; i < n; ++i) out[i * n + i] = ridge;
  for (std::size_t r = 0; r < n / 2; ++r) {
    std::vector<double> row(n);
    for (double& x : row) x = normal(random);
    for (std::size_t i = 0; i < n * n; ++i) out[i] += row[i / n] * row[i % n];
  }
  return out;
}

std::vector<double> lower_of(const std::vector<double>& matrix, std::size_t n) {
  std::vector<double> out;
  for (std::size_t i = 0; i < n * n; ++i) {
    if (i % n <= i / n) out.push_back(matrix[i]);
  }
  return out;
}

constexpr double kRidge = 0.1;
constexpr double kClose = 1e-9;  // condition numbers are below 1e4, and sums have 40 terms

TEST(Cholesky, solves_equations) {
  for (const std::size_t n : {1, 2, 7, 8, 9, 40}) {
    const auto matrix = matrix_of(n, kRidge, 3);
    constexpr std::size_t kColumns = 3;
    std::vector<double> sides(n * kColumns);
    for (std::size_t i = 0; i < sides.size(); ++i) sides[i] = std::sin(static_cast<double>(i));
    auto x = sides;
    Cholesky(lower_of(matrix, n), n, kRidge).solve(x, kColumns);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < kColumns; ++c) {
        double product = 0;
        for (std::size_t j = 0; j < n; ++j) product += matrix[i * n + j] * x[j * kColumns + c];
        ASSERT_NEAR(product, sides[i * kColumns + c], kClose) << n;
      }
    }
  }
}

TEST(Cholesky, inverse_of_its_root_turns_the_matrix_into_the_identity) {
  constexpr std::size_t kN = 20;
  const auto matrix = matrix_of(kN, kRidge, 5);
  const auto inverse = Cholesky(lower_of(matrix, kN), kN, kRidge).inverse_of_root();
  for (std::size_t a = 0; a < kN; ++a) {
    for (std::size_t b = 0; b < kN; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < kN; ++i) {
        for (std::size_t j = 0; j < kN; ++j) sum += inverse[a * kN + i] * matrix[i * kN + j] * inverse[b * kN + j];
      }
      ASSERT_NEAR(sum, a == b ? 1 : 0, kClose);
      if (b > a) {
        ASSERT_EQ(inverse[a * kN + b], 0);
      }
    }
  }
}

/// Two equal rows whose difference has been lost: the second pivot would be 0.
TEST(Cholesky, has_no_pivot_below_the_least_eigenvalue) {
  std::vector<double> x = {1, 1};
  Cholesky({1, 1, 1}, 2, 1e-4).solve(x, 1);
  EXPECT_DOUBLE_EQ(x[0], 1);
  EXPECT_DOUBLE_EQ(x[1], 0);
}

}  // namespace
}  // namespace winnow
