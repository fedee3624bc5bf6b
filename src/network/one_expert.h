// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/weights.h"

namespace winnow::network {

/// The matrices of one expert as the file has them, each a matrix of its own, with its biases. They have the same
/// addresses whichever expert it is.
class OneExpert {
 public:
  /// Of a layer's experts. What was there before ends.
  void be(const model::Weights& weights, int layer, int expert);

  const model::ExpertWeights& weights() const { return one_; }
  /// Those that rows are multiplied by.
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
