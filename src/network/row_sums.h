// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace winnow::network {

struct RowSums {
  float absolute = 0;  ///< sum of absolute values
  float squares = 0;
};

RowSums sums_of(std::span<const float> row);

}  // namespace winnow::network
