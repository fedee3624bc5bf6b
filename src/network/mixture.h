// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/weights.h"
#include "network/linear.h"

namespace winnow::network {

/// Rows [n_embd, rows], as experts and as their router read them.
struct RowsOfExperts {
  ggml_tensor* x;
  ggml_tensor* routed;
};

/// What the experts of a layer make of rows: by the router's softmax or sigmoid n_expert_used are chosen for each row,
/// ties going to the first, and weighed. Zeros where they multiply later. [n_embd, rows]
ggml_tensor* mixture(ggml_context* context, Linear& products, const model::Hparams& hparams,
                     const model::LayerWeights& weights, const model::LayerSpec& layer, const RowsOfExperts& rows);

/// What one expert makes of rows x [n_embd, rows], before they are weighed: [n_embd, rows].
ggml_tensor* expert(ggml_context* context, Linear& products, const model::Hparams& hparams,
                    const model::ExpertWeights& one, ggml_tensor* x);

/// `rows` [n, rows] in place, each times the sigmoid of its product with `gate` [n_embd]; x [n_embd, rows].
ggml_tensor* gated(ggml_context* context, Linear& products, ggml_tensor* rows, ggml_tensor* gate, ggml_tensor* x);

}  // namespace winnow::network
