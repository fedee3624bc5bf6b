// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace winnow::eval {

/// A mean with its 95 % confidence interval (percentile bootstrap, 2,000 draws, seeded).
struct Mean {
  double value = 0;
  double low = 0;
  double high = 0;
  std::size_t least = 0;  ///< values in the smallest group

  /// False for a single value, which has no spread.
  bool has_interval() const { return least > 1; }
  /// The mean in another unit.
  Mean times(double factor) const { return {value * factor, low * factor, high * factor, least}; }
};

/// REQUIRES: not empty.
Mean mean_of(std::span<const double> values);

/// The mean of the groups' means. The interval resamples each group by itself. REQUIRES: at least one group, none of
/// them empty.
Mean mean_of_means(std::span<const std::vector<double>> groups);

/// The two-sided p value of the mean of a - b, by a paired bootstrap (10,000 draws, seeded). REQUIRES: equal lengths,
/// not empty.
double paired_p(std::span<const double> a, std::span<const double> b);

}  // namespace winnow::eval
