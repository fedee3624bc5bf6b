// SPDX-License-Identifier: Apache-2.0
#include "base/cholesky.h"

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace winnow {

namespace {

double dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kTogether = 8;  // sums that do not wait for each other
  std::array<double, kTogether> sums{};
  std::size_t i = 0;
  for (; i + kTogether <= n; i += kTogether) {
    for (std::size_t k = 0; k < kTogether; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// to -= factor from.
void subtract(double factor, std::span<const double> from, std::span<double> to) {
  for (std::size_t c = 0; c < to.size(); ++c) to[c] -= factor * from[c];
}

}  // namespace

/// Row by row, so that all products are of rows.
Cholesky::Cholesky(std::vector<double> lower, std::size_t n, double least) : lower_(std::move(lower)), n_(n) {
  for (std::size_t i = 0; i < n; ++i) {
    double* const to = lower_.data() + i * (i + 1) / 2;
    for (std::size_t j = 0; j < i; ++j) to[j] = (to[j] - dot(to, row(j), j)) / row(j)[j];
    const double pivot = to[i] - dot(to, to, i);
    to[i] = std::sqrt(pivot < least ? least : pivot);
  }
}

void Cholesky::forward(std::span<double> sides, std::size_t columns) const {
  for (std::size_t i = 0; i < n_; ++i) {
    const auto side = sides.subspan(i * columns, columns);
    for (std::size_t k = 0; k < i; ++k) subtract(row(i)[k], sides.subspan(k * columns, columns), side);
    for (double& x : side) x /= row(i)[i];
  }
}

void Cholesky::backward(std::span<double> sides, std::size_t columns) const {
  for (std::size_t i = n_; i-- > 0;) {
    const auto side = sides.subspan(i * columns, columns);
    for (double& x : side) x /= row(i)[i];
    for (std::size_t k = 0; k < i; ++k) subtract(row(i)[k], side, sides.subspan(k * columns, columns));
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

}  // namespace winnow
