// SPDX-License-Identifier: Apache-2.0
#pragma once

struct ggml_tensor;

namespace winnow::model {

/// Matrices of all experts [inputs, outputs, n_expert]. For some types, ggml's fastest layout for single rows is slow
/// with many rows per expert; then there are two copies of the weights.
struct ExpertMatrices {
  ggml_tensor* of_many_rows = nullptr;
  ggml_tensor* of_single_rows = nullptr;  ///< often the same tensor
  ggml_tensor* bias = nullptr;            ///< [outputs, n_expert]; null: none
};

}  // namespace winnow::model
