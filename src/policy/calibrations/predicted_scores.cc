// SPDX-License-Identifier: Apache-2.0
#include "policy/calibrations/predicted_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/as_size.h"
#include "base/worker.h"
#include "policy/ridge.h"

namespace winnow::policy {

namespace {

constexpr const char* kPredictedScores = "predicted scores";
constexpr double kAlpha = 1;
constexpr double kLeastScore = 1e-12;  ///< lower bound, because 0 has no logarithm

/// Fits the logarithms of scores to rows of the layer's input.
class ScoreFit : public Calibrator {
 public:
  explicit ScoreFit(const CalibratedLayer& layer)
      : width_(as_size(layer.input_dim)), ridge_(layer.input_dim, layer.kv_heads) {}

  static std::size_t bytes(const CalibratedLayer& layer) { return Ridge::bytes(layer.input_dim, layer.kv_heads); }

  ObserverNeeds needs() const override { return {.inputs = has_keys_}; }
  /// Keys are computed from the input of the layer that stores them.
  void begin_layer(const ObservedLayer& layer) override {
    has_keys_ = layer.number == layer.keys_of;
    if (has_keys_) rows_.assign(as_size(layer.prompt.tokens) * width_, 0);
  }
  void see_inputs(const LayerInputs& inputs, Worker worker) override {
    for (int i = worker.index; i < inputs.count; i += worker.count)
      std::copy_n(inputs.data + as_size(i) * width_, width_, rows_.data() + as_size(inputs.first + i) * width_);
  }
  void see_scores(const Scores& scores) override {
    std::vector<float> targets;
    for (int j = kUnlikeOthers; j < scores.size(); ++j) {
      for (int head = 0; head < scores.heads(); ++head) {
        const double score = scores.head(head)[as_size(j)];
        targets.push_back(static_cast<float>(std::log(std::max(kLeastScore, score))));
      }
    }
    ridge_.add(std::span<const float>(rows_).subspan(kUnlikeOthers * width_), targets);
    rows_ = {};
  }
  std::vector<float> numbers() override {
    auto fit = ridge_.fit(kAlpha);
    explained_ = fit.explained;
    auto out = std::move(fit.weights);
    out.insert(out.end(), fit.bias.begin(), fit.bias.end());
    return out;
  }
  std::optional<double> explained() const override { return explained_; }

 private:
  std::size_t width_;
  bool has_keys_ = true;
  std::vector<float> rows_;  ///< input rows of the current passage, [tokens][n_embd]
  Ridge ridge_;
  double explained_ = 0;
};

}  // namespace

CalibrationPart predicted_scores() {
  return calibrated_by<ScoreFit>(kPredictedScores,
                                 "weights that predict scores of kvzip:normalize=plus from a layer's input");
}

ScorePredictor::ScorePredictor(const LayerCalibration& calibration, int kv_heads, int input_dim) {
  const auto weights = as_size(kv_heads) * as_size(input_dim);
  const auto numbers = calibration.numbers(kPredictedScores, weights + as_size(kv_heads));
  weights_ = numbers.first(weights);
  bias_ = numbers.subspan(weights);
}

float ScorePredictor::score(int kv_head, const float* row) const {
  constexpr std::size_t kTogether = 16;  // independent sums, which can be computed in parallel
  const std::size_t width = weights_.size() / bias_.size();
  const float* const w = weights_.data() + as_size(kv_head) * width;
  std::array<float, kTogether> sums{};
  std::size_t i = 0;
  for (; i + kTogether <= width; i += kTogether) {
    for (std::size_t k = 0; k < kTogether; ++k) sums[k] += w[i + k] * row[i + k];
  }
  for (; i < width; ++i) sums[0] += w[i] * row[i];
  return std::accumulate(sums.begin(), sums.end(), bias_[as_size(kv_head)]);
}

}  // namespace winnow::policy
