// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/weights.h"
#include "network/attention_op.h"
#include "network/finite.h"
#include "network/linear.h"

namespace winnow::network {

/// What the nodes of one layer's attention slot hand to the AttentionOp. Lives as long as the graph.
struct AttentionSlot {
  struct Stage {
    const AttentionSlot* slot = nullptr;
    int number = 0;
  };
  AttentionOp* const* attention = nullptr;  ///< set for each run: the graph may be older than the op
  FiniteWatch* watch = nullptr;             ///< looks at what the attention is handed
  AttentionOp::Tensors tensors;             ///< shapes; the pointers are taken from the nodes
  Stage stages[AttentionOp::kStages];
};

/// What passes through a layer, f32.
struct LayerRows {
  ggml_tensor* hidden;     ///< [n_embd, rows], changed in place
  ggml_tensor* positions;  ///< [rows] i32
  // Null where layers have no embeddings of their own.
  ggml_tensor* embedded = nullptr;  ///< [n_embd, rows] the tokens' embeddings
  ggml_tensor* own = nullptr;       ///< [n_embd_layer, rows] the layer's
};

/// Adds one transformer layer to a graph under construction; returns the hidden states. Norm, Q, K, V (normalised where
/// the model does that), RoPE, attention, output projection, norm, feed-forward; architectures leave out, add and
/// reorder norms, biases and scales (model::Architecture).
ggml_tensor* add_layer(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                       const LayerRows& rows, AttentionSlot& slot);

/// A layer's keys and values alone, side by side: [2 * H_kv * d, rows].
ggml_tensor* add_keys_and_values(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                                 ggml_tensor* hidden, ggml_tensor* positions);

/// The final norm: [n_embd, rows].
ggml_tensor* add_final_norm(ggml_context* context, const model::Weights& weights, ggml_tensor* hidden);

/// The final norm, output matrix, scale and soft cap: logits [n_vocab, rows].
ggml_tensor* add_output(ggml_context* context, Linear& products, const model::Weights& weights, ggml_tensor* hidden);

}  // namespace winnow::network
