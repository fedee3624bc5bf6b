// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/weights.h"

namespace winnow::network {

/// Views of one expert's matrices and biases in the file. be() reuses the ggml_tensor structs, so their addresses are
/// the same for every expert.
class OneExpert {
 public:
  /// Selects an expert of a layer.
  void be(const model::Weights& weights, int layer, int expert);

  const model::ExpertWeights& weights() const { return one_; }
  /// The matrices without their biases: gate (if any), up and down.
  std::vector<const ggml_tensor*> matrices() const;

 private:
  model::ExpertMatrices slice(const model::Weights& weights, const model::ExpertMatrices& all, int expert);
  ggml_tensor* slice(const ggml_tensor& all, const std::byte* data, std::int64_t outputs);

  static constexpr std::size_t kTensors = 6;  // gate, up, down and their biases
  std::vector<std::byte> metadata_ = std::vector<std::byte>(kTensors * ggml_tensor_overhead());
  ggml_context_ptr context_;
  model::ExpertWeights one_;
};

}  // namespace winnow::network
