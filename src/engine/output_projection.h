// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/executor.h"
#include "policy/observers/output_lengths.h"

namespace winnow::engine {

/// Computes the output projections of a model's layers with the executor.
class OutputProjection : public policy::OutputProjection {
 public:
  /// `executor` outlives it.
  explicit OutputProjection(network::Executor& executor) : executor_(executor) {}

  void lengths(int layer, const cache::LayerScratch& scratch, policy::OutputLengths& out) const override;

 private:
  network::Executor& executor_;
};

}  // namespace winnow::engine
