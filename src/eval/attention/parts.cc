// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/parts.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::eval {

std::vector<double> means_by_part(std::span<const double> numbers) {
  std::vector<double> sums(kParts);
  std::vector<double> counts(kParts);
  const int tokens = static_cast<int>(numbers.size());
  for (int i = 0; i < tokens; ++i) {
    const auto part = as_size(part_of(i, tokens));
    sums[part] += numbers[as_size(i)];
    counts[part] += 1;
  }
  for (std::size_t p = 0; p < sums.size(); ++p) sums[p] /= std::max(1.0, counts[p]);
  return sums;
}

}  // namespace winnow::eval
