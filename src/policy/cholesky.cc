// SPDX-License-Identifier: Apache-2.0
#include "policy/cholesky.h"

#include <cmath>
#include <utility>

namespace winnow::policy {

namespace {

/// to -= factor from.
void subtract(double factor, std::span<const double> from, std::span<double> to) {
  for (std::size_t c = 0; c < to.size(); ++c) to[c] -= factor * from[c];
}

}  // namespace

/// Row by row: each is taken from those below it, so that all loops run along rows.
Cholesky::Cholesky(std::vector<double> matrix, std::size_t n) : upper_(std::move(matrix)), n_(n) {
  const std::span<double> all = upper_;
  for (std::size_t k = 0; k < n; ++k) {
    const auto row = all.subspan(k * n, n);
    const double root = std::sqrt(row[k]);
    for (std::size_t j = k; j < n; ++j) row[j] /= root;
    for (std::size_t i = k + 1; i < n; ++i) subtract(row[i], row.subspan(i), all.subspan(i * n + i, n - i));
  }
}

void Cholesky::forward(std::span<double> sides, std::size_t columns) const {
  for (std::size_t k = 0; k < n_; ++k) {
    const auto row = sides.subspan(k * columns, columns);
    for (double& x : row) x /= at(k, k);
    for (std::size_t i = k + 1; i < n_; ++i) subtract(at(k, i), row, sides.subspan(i * columns, columns));
  }
}

void Cholesky::backward(std::span<double> sides, std::size_t columns) const {
  for (std::size_t k = n_; k-- > 0;) {
    const auto row = sides.subspan(k * columns, columns);
    for (std::size_t i = k + 1; i < n_; ++i) subtract(at(k, i), sides.subspan(i * columns, columns), row);
    for (double& x : row) x /= at(k, k);
  }
}

void Cholesky::solve(std::span<double> sides, std::size_t columns) const {
  forward(sides, columns);
  backward(sides, columns);
}

std::vector<double> Cholesky::inverse_of_root() const {
  std::vector<double> out(n_ * n_);
  for (std::size_t i = 0; i < n_; ++i) out[i * n_ + i] = 1;
  forward(out, n_);
  return out;
}

}  // namespace winnow::policy
