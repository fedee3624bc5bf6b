// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace winnow::policy {

/// Whole numbers near fractional shares that add up to `total` exactly: each share is rounded down, then what is left
/// goes, one by one, to the largest fractions; of equal fractions to the lower index first. Every count that a budget
/// rule derives from fractions comes from here. REQUIRES: shares from 0 to 2^30 whose sum is `total` but for rounding;
/// throws std::invalid_argument otherwise.
std::vector<int> apportion(std::span<const double> shares, int total);

}  // namespace winnow::policy
