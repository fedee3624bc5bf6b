// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/calibration.h"
#include "winnow/policy/method.h"

namespace winnow::engine {

/// What a calibration predicts of the tokens of a prompt, from the rows that they enter a layer's attention with.
class PredictedScores {
 public:
  /// `calibration` outlives it.
  PredictedScores(const LayerCalibration& calibration, int tokens)
      : calibration_(&calibration), scores_(static_cast<int>(calibration.bias.size()), tokens) {}

  /// Threads may do this for different tokens. `row` [n_embd].
  void add(int token, const float* row) {
    for (int head = 0; head < scores_.heads(); ++head) scores_.head(head)[token] = calibration_->score(head, row);
  }

  const policy::Scores& scores() const { return scores_; }

 private:
  const LayerCalibration* calibration_;
  policy::Scores scores_;
};

}  // namespace winnow::engine
