// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "winnow/policy/calibrator.h"

namespace winnow::policy {

/// A linear map of the row that a token's query, key and value are made of, which predicts the logarithm of its score:
/// ridge regression.
CalibrationPart predicted_scores();

/// That map in one layer.
class ScorePredictor {
 public:
  ScorePredictor(const LayerCalibration& calibration, int kv_heads, int input_dim);
  /// The prediction from one such row, [n_embd].
  float score(int kv_head, const float* row) const;

 private:
  std::span<const float> weights_;  ///< [H_kv][n_embd]
  std::span<const float> bias_;     ///< [H_kv]
};

}  // namespace winnow::policy
