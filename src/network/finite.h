// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <limits>
#include <span>

#include "base/worker.h"
#include "model/weights.h"
#include "winnow/error.h"

namespace winnow::network {

/// Whether no value is NaN or infinite.
bool all_finite(std::span<const float> values);

/// Finds the first layer of a graph that hands its attention a value that is not finite. The workers of a team may look
/// at the same time.
class FiniteWatch {
 public:
  static constexpr int kNone = std::numeric_limits<int>::max();

  void begin() { first_.store(kNone, std::memory_order_relaxed); }
  /// A worker's share of what a layer hands on.
  void look(int layer, std::span<const float> values, Worker worker) noexcept;
  /// kNone: everything was finite.
  int first() const { return first_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> first_{kNone};
};

/// The error to throw where the values that reach the attention of `layer` are not finite, or the logits where `layer`
/// is the number of layers. It names the tensor that holds such a value; where none does, the layer.
ModelError not_finite(const model::Weights& weights, int layer);

}  // namespace winnow::network
