// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// Lengths of W_o^(h) v, the value of a KV head multiplied by each query head's part of the output projection,
/// [H_q][n].
struct OutputLengths {
  Scores absolute;   ///< sum of absolute values
  Scores euclidean;  ///< square root of the sum of squares
};

/// The output projections of a model's layers.
class OutputProjection {
 public:
  OutputProjection() = default;
  OutputProjection(const OutputProjection&) = delete;
  OutputProjection& operator=(const OutputProjection&) = delete;
  virtual ~OutputProjection() = default;
  /// Fills `out` from the values in the scratch. If layers share values, this layer's own projection is used. Throws
  /// MemoryError and Interrupted.
  virtual void lengths(int layer, const cache::LayerScratch& scratch, OutputLengths& out) const = 0;
};

ObserverPart<OutputLengths> observe_output_lengths();

}  // namespace winnow::policy
