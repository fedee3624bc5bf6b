// SPDX-License-Identifier: Apache-2.0
#include "policy/ridge.h"

#include <algorithm>
#include <utility>

#include "attention/products.h"
#include "base/as_size.h"
#include "policy/ridged.h"

namespace winnow::policy {

namespace {

constexpr std::size_t kProductsTogether = 256;  // rows whose products are summed in f32
constexpr std::size_t kInputsTogether = 128;    // inputs of the right factor at a time

}  // namespace

Ridge::Ridge(int inputs, int outputs)
    : inputs_(as_size(inputs)),
      outputs_(as_size(outputs)),
      sums_(inputs_),
      products_(inputs_ * (inputs_ + 1) / 2),
      target_sums_(outputs_),
      target_squares_(outputs_),
      with_targets_(outputs_ * inputs_) {}

std::size_t Ridge::bytes(int inputs, int outputs) {
  const auto in = as_size(inputs);
  return (in * (in + 1) / 2 + (as_size(outputs) + 2) * in) * sizeof(double);
}

void Ridge::add(std::span<const float> rows, std::span<const float> targets) {
  const std::size_t n = rows.size() / inputs_;
  if (origin_.empty()) {
    std::vector<double> sums(inputs_);
    for (std::size_t i = 0; i < rows.size(); ++i) sums[i % inputs_] += rows[i];
    for (const double sum : sums) origin_.push_back(static_cast<float>(sum / static_cast<double>(n)));
  }
  std::vector<float> moved(rows.begin(), rows.end());
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= origin_[i % inputs_];
  for (std::size_t i = 0; i < n; ++i) {
    const float* const x = moved.data() + i * inputs_;
    for (std::size_t j = 0; j < inputs_; ++j) sums_[j] += x[j];
    for (std::size_t o = 0; o < outputs_; ++o) {
      const double y = targets[i * outputs_ + o];
      target_sums_[o] += y;
      target_squares_[o] += y * y;
      double* const to = with_targets_.data() + o * inputs_;
      for (std::size_t j = 0; j < inputs_; ++j) to[j] += y * x[j];
    }
  }
  for (std::size_t first = 0; first < n; first += kProductsTogether) {
    const std::size_t count = std::min(kProductsTogether, n - first);
    add_products(std::span(moved).subspan(first * inputs_, count * inputs_), count);
  }
  rows_ += static_cast<double>(n);
}

/// Computes the lower triangle by columns: the right factor has the inputs [first, first + count), and the left factor
/// has the inputs from `first` on.
void Ridge::add_products(std::span<const float> rows, std::size_t n) {
  std::vector<float> columns(inputs_ * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < inputs_; ++j) columns[j * n + i] = rows[i * inputs_ + j];
  }
  const std::span<const float> all(columns);
  for (std::size_t first = 0; first < inputs_; first += kInputsTogether) {
    const std::size_t count = std::min(kInputsTogether, inputs_ - first);
    const attention::PackedRows right(all.subspan(first * n, count * n), static_cast<int>(n));
    std::vector<float> out((inputs_ - first) * as_size(right.stride()));
    right.multiply(all.subspan(first * n), out);
    for (std::size_t i = first; i < inputs_; ++i) {
      const float* const from = out.data() + (i - first) * as_size(right.stride());
      for (std::size_t j = first; j < std::min(i + 1, first + count); ++j) product(i, j) += from[j - first];
    }
  }
}

void Ridge::centre(double alpha) {
  for (std::size_t i = 0; i < inputs_; ++i) {
    for (std::size_t j = 0; j <= i; ++j) product(i, j) -= sums_[i] * sums_[j] / rows_;
    product(i, i) += alpha;
  }
  for (std::size_t o = 0; o < outputs_; ++o) {
    for (std::size_t j = 0; j < inputs_; ++j) with_targets_[o * inputs_ + j] -= target_sums_[o] * sums_[j] / rows_;
  }
}

LinearFit Ridge::fit(double alpha) {
  centre(alpha);
  const auto inputs = static_cast<Eigen::Index>(inputs_);
  const auto outputs = static_cast<Eigen::Index>(outputs_);
  Eigen::MatrixXd lower(inputs, inputs);
  for (std::size_t i = 0; i < inputs_; ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      lower(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = product(i, j);
  }
  products_ = {};
  const Eigen::Map<const Eigen::MatrixXd> with(with_targets_.data(), inputs, outputs);
  const Eigen::MatrixXd weights = Ridged(lower, alpha).solve(with);
  LinearFit out;
  for (std::size_t o = 0; o < outputs_; ++o) {
    const auto column = static_cast<Eigen::Index>(o);
    const auto w = weights.col(column);
    double bias = target_sums_[o] / rows_;
    for (std::size_t j = 0; j < inputs_; ++j)
      bias -= w[static_cast<Eigen::Index>(j)] * (sums_[j] / rows_ + static_cast<double>(origin_[j]));
    out.weights.insert(out.weights.end(), w.begin(), w.end());
    out.bias.push_back(static_cast<float>(bias));
    // With (A + alpha) w = c, the residual sum of squares is |y|² - w·c - alpha |w|².
    const double all = target_squares_[o] - target_sums_[o] * target_sums_[o] / rows_;
    if (all > 0)
      out.explained += (w.dot(with.col(column)) + alpha * w.squaredNorm()) / all / static_cast<double>(outputs_);
  }
  return out;
}

}  // namespace winnow::policy
