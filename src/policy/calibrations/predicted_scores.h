// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "winnow/policy/calibrator.h"

namespace winnow::policy {

/// Ridge regression: a linear map that predicts the logarithm of a token's score from its row of the layer's input.
CalibrationPart predicted_scores();

/// The linear map of one layer.
class ScorePredictor {
 public:
  ScorePredictor(const LayerCalibration& calibration, int kv_heads, int input_dim);
  /// Prediction from a row of the layer's input, [n_embd].
  float score(int kv_head, const float* row) const;

 private:
  std::span<const float> weights_;  ///< [H_kv][n_embd]
  std::span<const float> bias_;     ///< [H_kv]
};

}  // namespace winnow::policy
