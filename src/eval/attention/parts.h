// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace winnow::eval {

/// Number of equal parts of a prompt that series have a number for.
inline constexpr int kParts = 32;

/// The part in which a position lies.
inline int part_of(int position, int tokens) {
  return static_cast<int>(static_cast<std::int64_t>(position) * kParts / tokens);
}

/// Mean of the numbers [N] in each part; 0 in an empty part.
std::vector<double> means_by_part(std::span<const double> numbers);

}  // namespace winnow::eval
