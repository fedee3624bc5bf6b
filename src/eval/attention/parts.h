// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace winnow::eval {

/// Equal parts of a prompt by which figures are told.
inline constexpr int kParts = 32;

/// In which of them a position lies.
inline int part_of(int position, int tokens) {
  return static_cast<int>(static_cast<std::int64_t>(position) * kParts / tokens);
}

/// The mean of the numbers [N] in each part; 0 where none lies in it.
std::vector<double> means_by_part(std::span<const double> numbers);

}  // namespace winnow::eval
