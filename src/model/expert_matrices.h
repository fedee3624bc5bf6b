// SPDX-License-Identifier: Apache-2.0
#pragma once

struct ggml_tensor;

namespace winnow::model {

/// Matrices [inputs, outputs, n_expert], which follow each other. For some types ggml multiplies single rows fastest by
/// a layout in which it is slow with many rows of an expert. Then there are both, of the same weights.
struct ExpertMatrices {
  ggml_tensor* of_many_rows = nullptr;
  ggml_tensor* of_single_rows = nullptr;  ///< often the same tensor
  ggml_tensor* bias = nullptr;            ///< [outputs, n_expert]; null: there is none
};

}  // namespace winnow::model
