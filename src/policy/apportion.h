// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace winnow::policy {

/// Rounds fractional shares to whole numbers that add up to `total` exactly: each share is rounded down, and the rest
/// goes, one by one, to the largest fractions; ties go to the lower index. All counts that a budget rule derives from
/// fractions are computed here. REQUIRES: shares from 0 to 2^30 whose sum is `total` up to rounding; throws
/// std::invalid_argument otherwise.
std::vector<int> apportion(std::span<const double> shares, int total);

}  // namespace winnow::policy
