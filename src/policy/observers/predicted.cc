// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/predicted.h"

#include "base/as_size.h"
#include "base/worker.h"
#include "policy/calibrations/predicted_scores.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

class Predicted : public ObserverOf<Scores> {
 public:
  struct Wanted {
    bool operator==(const Wanted&) const = default;
  };

  Predicted(const Wanted& /*wanted*/, const ObservedLayer& layer)
      : predictor_(layer.calibration, layer.prompt.kv_heads, layer.input_dim),
        scores_(layer.prompt.kv_heads, layer.prompt.tokens) {}

  static ObserverBytes bytes(const Wanted& /*wanted*/, const ObservedLayer& layer) {
    return {as_size(layer.prompt.kv_heads) * as_size(layer.prompt.tokens) * sizeof(float), 0};
  }

  ObserverNeeds needs() const override { return {.inputs = true}; }
  /// Keys are computed from the input of the layer that stores them.
  void begin_layer(const ObservedLayer& layer) override { has_keys_ = layer.number == layer.keys_of; }
  void see_inputs(const LayerInputs& inputs, Worker worker) override {
    for (int i = worker.index; has_keys_ && i < inputs.count; i += worker.count) {
      const float* const row = inputs.data + static_cast<std::ptrdiff_t>(i) * inputs.width;
      for (int head = 0; head < scores_.heads(); ++head)
        scores_.head(head)[as_size(inputs.first + i)] = predictor_.score(head, row);
    }
  }
  const Scores& result() const override { return scores_; }

 private:
  ScorePredictor predictor_;
  Scores scores_;
  bool has_keys_ = true;
};

}  // namespace

ObserverPart<Scores> observe_predictions() {
  return {"predictions", "what the calibration predicts of each token",
          [](const Asking&) { return request<Predicted, Scores>({}); }};
}

}  // namespace winnow::policy
