// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// How long what each query head's part of a layer's output projection makes of the values of its KV head is: lengths
/// of W_o^(h) v, [H_q][n] each.
struct OutputLengths {
  Scores absolute;   ///< the sum of absolute values
  Scores euclidean;  ///< the root of the sum of squares
};

/// The output projections of a model's layers.
class OutputProjection {
 public:
  OutputProjection() = default;
  OutputProjection(const OutputProjection&) = delete;
  OutputProjection& operator=(const OutputProjection&) = delete;
  virtual ~OutputProjection() = default;
  /// Fills `out` from the values in the scratch; where other layers read them, too, by this layer's own projection.
  /// Throws MemoryError and Interrupted.
  virtual void lengths(int layer, const cache::LayerScratch& scratch, OutputLengths& out) const = 0;
};

ObserverPart<OutputLengths> observe_output_lengths();

}  // namespace winnow::policy
