// SPDX-License-Identifier: Apache-2.0
#include "attention/rotation.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/as_size.h"

namespace winnow::attention {

Buffer RotationTable::multiples(std::int32_t step, std::int32_t count) const {
  const auto half = as_size(width());
  Buffer out(*account_, as_size(count) * 2 * half * sizeof(float), "the table of rotations");
  const auto rows = out.as<float>();
  std::fill(rows.begin(), rows.end(), 0.0F);
  std::vector<float> angles(2 * pairs());
  const auto sines = angles.begin() + pairs();
  for (std::int32_t i = 0; i < count; ++i) {
    rope_->angles(static_cast<std::int64_t>(i) * step, angles.data());
    float* const row = rows.data() + as_size(i) * 2 * half;
    std::copy(angles.begin(), sines, row);
    std::copy(sines, angles.end(), row + half);
  }
  return out;
}

/// The new table and the one that it replaces exist at the same time.
std::size_t RotationTable::bytes(const Rope& rope, std::int32_t end) {
  return as_size(kFine + 2 * coarse_rows(end)) * 2 * as_size(width_of(rope)) * sizeof(float);
}

void RotationTable::reserve(std::int32_t end) {
  if (end <= end_) return;
  if (fine_.empty()) fine_ = multiples(1, kFine);
  const std::int32_t rows = coarse_rows(end);
  coarse_ = multiples(kFine, rows);
  end_ = rows * kFine;
}

}  // namespace winnow::attention
