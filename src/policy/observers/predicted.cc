// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/predicted.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>

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

  /// Scores depend on the session's calibration, which is part of what identifies a stored state.
  static std::string state_name(const Wanted& /*wanted*/) { return "predictions"; }
  /// [rows][H_kv]: later rows do not change the scores of earlier ones.
  static constexpr bool kStateGrows = true;
  static std::size_t state_bytes(const Wanted& /*wanted*/, const ObservedLayer& layer, int rows) {
    return as_size(layer.prompt.kv_heads) * as_size(rows) * sizeof(float);
  }
  void take_state(int rows, std::span<const std::byte> state) override {
    const auto* from = reinterpret_cast<const float*>(state.data());
    for (int row = 0; row < rows; ++row) {
      for (int head = 0; head < scores_.heads(); ++head) scores_.head(head)[as_size(row)] = *from++;
    }
  }
  void keep_state(int rows, std::span<std::byte> state) override {
    kept_.emplace(rows, reinterpret_cast<float*>(state.data()));
  }
  void end_layer(const EndedLayer& /*layer*/) override {
    for (auto [rows, to] : kept_) {
      for (int row = 0; row < rows; ++row) {
        for (int head = 0; head < scores_.heads(); ++head) *to++ = scores_.head(head)[as_size(row)];
      }
    }
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
  std::map<int, float*> kept_;  ///< destinations of states, by rows
};

}  // namespace

ObserverPart<Scores> observe_predictions() {
  return {"predictions", "the calibration's prediction for each token",
          [](const Asking&) { return request<Predicted, Scores>({}); }};
}

}  // namespace winnow::policy
