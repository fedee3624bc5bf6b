// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/turn.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace winnow::attention::cpu {

Buffer TurnTable::multiples(std::int32_t step, std::int32_t count) const {
  const auto half = static_cast<std::size_t>(width());
  Buffer out(*account_, static_cast<std::size_t>(count) * 2 * half * sizeof(float), "the table of rotations");
  const auto rows = out.as<float>();
  std::fill(rows.begin(), rows.end(), 0.0F);
  std::vector<float> angles(static_cast<std::size_t>(2 * pairs()));
  const auto sines = angles.begin() + pairs();
  for (std::int32_t i = 0; i < count; ++i) {
    rope_->angles(static_cast<std::int64_t>(i) * step, angles.data());
    float* const row = rows.data() + static_cast<std::size_t>(i) * 2 * half;
    std::copy(angles.begin(), sines, row);
    std::copy(sines, angles.end(), row + half);
  }
  return out;
}

void TurnTable::reserve(std::int32_t end) {
  if (end <= end_) return;
  if (fine_.empty()) fine_ = multiples(1, kFine);
  const std::int32_t rows = end / kFine + end / (2 * kFine) + 1;
  coarse_ = multiples(kFine, rows);
  end_ = rows * kFine;
}

}  // namespace winnow::attention::cpu
