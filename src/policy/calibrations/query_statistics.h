// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "winnow/policy/calibrator.h"

namespace winnow::policy {

/// Means of a layer's queries before RoPE, and of the lengths of the element pairs that RoPE rotates.
CalibrationPart query_statistics();

/// Statistics of one query head.
struct QueryStatistics {
  std::span<const float> mean;          ///< [d]
  std::span<const float> mean_lengths;  ///< [d / 2], by pair of elements, in the order of Rope::pair()
};
/// REQUIRES: head < query_heads.
QueryStatistics query_statistics_of(const LayerCalibration& calibration, const attention::Shape& shape, int query_head);

}  // namespace winnow::policy
