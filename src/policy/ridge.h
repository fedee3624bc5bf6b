// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace winnow::policy {

/// A fitted linear map.
struct LinearFit {
  std::vector<float> weights;  ///< [outputs][inputs]
  std::vector<float> bias;     ///< [outputs]
  /// Explained share of the targets' variance, the mean over the outputs.
  double explained = 0;
};

/// Ridge regression in closed form: the W and b that minimise sum |y - (W x + b)|² + alpha |W|². Rows are added as they
/// come, and memory does not grow with them.
class Ridge {
 public:
  Ridge(int inputs, int outputs);
  /// Bytes of one Ridge.
  static std::size_t bytes(int inputs, int outputs);

  /// Adds rows [n][inputs] with targets [n][outputs].
  void add(std::span<const float> rows, std::span<const float> targets);
  /// REQUIRES: alpha > 0, some rows. May be called once.
  LinearFit fit(double alpha);

 private:
  void add_products(std::span<const float> rows, std::size_t n);
  /// Turns the sums into sums of products of deviations from the means, and adds alpha to the diagonal.
  void centre(double alpha);
  double& product(std::size_t i, std::size_t j) { return products_[i * (i + 1) / 2 + j]; }

  std::size_t inputs_;
  std::size_t outputs_;
  double rows_ = 0;
  std::vector<float> origin_;           ///< [inputs], subtracted first so that sums of squares lose no digits
  std::vector<double> sums_;            ///< [inputs]
  std::vector<double> products_;        ///< of inputs with inputs: the lower triangle, row by row
  std::vector<double> target_sums_;     ///< [outputs]
  std::vector<double> target_squares_;  ///< [outputs]
  std::vector<double> with_targets_;    ///< of targets with inputs, [outputs][inputs]
};

}  // namespace winnow::policy
