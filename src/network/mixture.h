// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/weights.h"
#include "network/linear.h"

namespace winnow::network {

/// The least sum of weights by which they are normalised, as in llama.cpp.
inline constexpr float kLeastSum = 0x1p-14F;

/// Inputs [n_embd, rows] of the experts and of their router.
struct RowsOfExperts {
  ggml_tensor* x;
  ggml_tensor* routed;
};

/// Output of a layer's experts: n_expert_used are chosen for each row by the router's softmax or sigmoid, ties going to
/// the first on the CPU, and weighted. Zeros if the experts run later. [n_embd, rows]
ggml_tensor* mixture(ggml_context* context, Linear& products, const model::Hparams& hparams,
                     const model::LayerWeights& weights, const model::LayerSpec& layer, const RowsOfExperts& rows);

/// Output of one expert for rows x [n_embd, rows], unweighted: [n_embd, rows].
ggml_tensor* expert(ggml_context* context, Linear& products, const model::Hparams& hparams,
                    const model::ExpertWeights& one, ggml_tensor* x);

/// Multiplies `rows` [n, rows] in place by the sigmoid of the product of x [n_embd, rows] and `gate` [n_embd].
ggml_tensor* gated(ggml_context* context, Linear& products, ggml_tensor* rows, ggml_tensor* gate, ggml_tensor* x);

}  // namespace winnow::network
