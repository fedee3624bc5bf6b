// SPDX-License-Identifier: Apache-2.0
#include "base/rope.h"

#include <cmath>

namespace winnow {

void Rope::pair_lengths(std::span<const float> head, std::span<float> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [x, y] = pair(i);
    out[i] = std::sqrt(head[x] * head[x] + head[y] * head[y]);
  }
}

void Rope::shift(float* head, std::int64_t positions) const {
  if (positions == 0) return;
  std::vector<float> by(2 * frequency.size());
  angles(positions, by.data());
  rotate(head, by.data());
}

void Rope::angles(std::int64_t position, float* out) const {
  const std::size_t pairs = frequency.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(position) * static_cast<double>(frequency[i]);
    out[i] = static_cast<float>(std::cos(angle));
    out[pairs + i] = static_cast<float>(std::sin(angle));
  }
}

void Rope::rotate(float* head, const float* angles) const {
  const std::size_t pairs = frequency.size();
  const std::size_t step = pairing == Pairing::adjacent ? 2 : 1;
  const std::size_t partner = pairing == Pairing::adjacent ? 1 : pairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    const float c = angles[i];
    const float s = angles[pairs + i];
    float& x = head[i * step];
    float& y = head[i * step + partner];
    const float rotated = x * c - y * s;
    y = x * s + y * c;
    x = rotated;
  }
}

}  // namespace winnow
