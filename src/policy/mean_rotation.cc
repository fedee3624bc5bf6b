// SPDX-License-Identifier: Apache-2.0
#include "policy/mean_rotation.h"

#include <cmath>

namespace winnow::policy {

MeanRotation::MeanRotation(const Rope& rope, std::span<const std::int64_t> positions) : rope_(rope) {
  const auto count = static_cast<double>(positions.size());
  for (const double f : rope.frequency) {
    double c = 0;
    double s = 0;
    for (const auto position : positions) {
      const double angle = static_cast<double>(position) * f;
      c += std::cos(angle) / count;
      s += std::sin(angle) / count;
    }
    cosine_.push_back(c);
    sine_.push_back(s);
  }
}

void MeanRotation::apply(double* x, std::size_t step) const {
  for (std::size_t i = 0; i < cosine_.size(); ++i) {
    const auto [first, second] = rope_.pair(i);
    double& a = x[first * step];
    double& b = x[second * step];
    const double rotated = a * cosine_[i] - b * sine_[i];
    b = a * sine_[i] + b * cosine_[i];
    a = rotated;
  }
}

}  // namespace winnow::policy
