// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rope.h"

namespace winnow::policy {

/// Mean of RoPE's rotations to some positions: it rotates each pair of elements and shortens it. Elements that RoPE
/// does not rotate stay.
class MeanRotation {
 public:
  /// `rope` outlives it. REQUIRES: at least one position.
  MeanRotation(const Rope& rope, std::span<const std::int64_t> positions);

  /// Rotates a vector [d] whose elements are `step` apart.
  void apply(double* x, std::size_t step) const;

 private:
  const Rope& rope_;
  std::vector<double> cosine_;
  std::vector<double> sine_;
};

}  // namespace winnow::policy
