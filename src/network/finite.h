// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <limits>
#include <span>

#include "base/worker.h"
#include "model/weights.h"
#include "winnow/error.h"

namespace winnow::network {

/// True if no value is NaN or infinite.
bool all_finite(std::span<const float> values);

/// Finds the first layer of a graph whose attention gets a value that is not finite. The workers of a team may check at
/// the same time.
class FiniteCheck {
 public:
  static constexpr int kNone = std::numeric_limits<int>::max();

  void begin() { first_.store(kNone, std::memory_order_relaxed); }
  /// Checks a worker's share of the values.
  void check(int layer, std::span<const float> values, Worker worker) noexcept;
  /// Notes that the layer gets such a value.
  void found(int layer) noexcept;
  /// Number of the first such layer; kNone: all values were finite.
  int first() const { return first_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> first_{kNone};
};

/// The error for values that are not finite in the attention of `layer`, or in the logits if `layer` is the number of
/// layers. Names a tensor of the file that has such a value, else the layer.
ModelError not_finite(const model::Weights& weights, int layer);

}  // namespace winnow::network
