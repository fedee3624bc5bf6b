// SPDX-License-Identifier: Apache-2.0
#include "policy/apportion.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>

namespace winnow::policy {

namespace {

/// Shares are rounded to multiples of 2^-32. Fractions that differ by rounding errors only become equal, and later
/// steps are exact.
constexpr int kFractionBits = 32;
constexpr double kMostShare = 1 << 30;

std::int64_t fixed(double share) {
  if (!(share >= 0 && share <= kMostShare))
    throw std::invalid_argument("apportion: a share is negative, too large or NaN");
  return std::llround(std::ldexp(share, kFractionBits));
}

}  // namespace

std::vector<int> apportion(std::span<const double> shares, int total) {
  std::vector<std::int64_t> fractions;
  std::vector<int> out;
  std::int64_t left = total;
  for (const double share : shares) {
    const std::int64_t value = fixed(share);
    out.push_back(static_cast<int>(value >> kFractionBits));
    fractions.push_back(value & ((std::int64_t{1} << kFractionBits) - 1));
    left -= out.back();
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!(std::abs(sum - total) < 0.5)) throw std::invalid_argument("apportion: the shares do not add up to the total");
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return fractions[a] > fractions[b]; });
  for (std::int64_t i = 0; i < left; ++i) ++out[order[i]];
  return out;
}

}  // namespace winnow::policy
