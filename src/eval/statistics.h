// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace winnow::eval {

/// A mean with the interval that holds 95 of 100 means of as many samples drawn anew from these (percentile bootstrap,
/// 2,000 draws, seeded).
struct Mean {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// REQUIRES: not empty.
Mean mean_of(std::span<const double> values);

/// The mean of the groups' means, and its interval when each group is drawn anew by itself. REQUIRES: no group is
/// empty, and there is one.
Mean mean_of_means(std::span<const std::vector<double>> groups);

/// How often a paired bootstrap (10,000 draws, seeded) finds the mean of a - b on the other side of 0, twice: the
/// two-sided p value. REQUIRES: of equal length, not empty.
double paired_p(std::span<const double> a, std::span<const double> b);

}  // namespace winnow::eval
