// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/hparams.h"
#include "model/layer_weights.h"

namespace winnow::network {

/// The experts of each row.
struct Routed {
  ggml_tensor* chosen;  ///< [k, rows] i32
  ggml_tensor* shares;  ///< [1, k, rows] weights of their outputs
};

/// Chooses k experts for each row as mixture() does, by ggml's own operations, which run on devices. Ties may go to any
/// expert. `logits`: [n_expert, rows]
Routed route(ggml_context* context, const model::Routing& routing, const model::ExpertWeights& experts, int k,
             ggml_tensor* logits);

/// The weighted sum of the outputs of a row's experts, [n_embd, k, rows]: [n_embd, rows].
ggml_tensor* weighted_sum(ggml_context* context, ggml_tensor* outputs, ggml_tensor* shares);

/// Upper bound of the nodes that both add to a layer.
int routing_nodes(int k);

}  // namespace winnow::network
