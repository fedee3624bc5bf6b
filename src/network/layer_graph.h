// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/weights.h"
#include "network/attention_op.h"
#include "network/finite.h"
#include "network/linear.h"

namespace winnow::network {

/// Arguments of the AttentionOp for the nodes of one layer's attention slot. Must outlive the graph.
struct AttentionSlot {
  struct Phase {
    const AttentionSlot* slot = nullptr;
    int number = 0;
  };
  AttentionOp* const* attention = nullptr;  ///< set for each run: a reused graph is older than the op
  FiniteCheck* finite = nullptr;            ///< checks the inputs of attention
  AttentionOp::Tensors tensors;             ///< shapes; the pointers come from the nodes
  Phase phases[AttentionOp::kPhases];
  const ggml_tensor* first = nullptr;  ///< the node of phase 0
};

/// The tensors of a slot.
AttentionOp::Tensors tensors_of(const AttentionSlot& slot);

/// Asks the slot's AttentionOp to do its work for tensors in a device's memory. Returns false if it cannot. Throws
/// Error.
bool attend_on_device(const AttentionSlot& slot);

/// Inputs of a layer, f32.
struct LayerRows {
  ggml_tensor* hidden;                  ///< [n_embd, rows], changed in place
  ggml_tensor* positions;               ///< [rows] i32
  ggml_tensor* temperatures = nullptr;  ///< [1, 1, rows] by which queries are multiplied; null: none
  // Null without per-layer embeddings.
  ggml_tensor* embedded = nullptr;  ///< [n_embd, rows] token embeddings
  ggml_tensor* own = nullptr;       ///< [n_embd_layer, rows] per-layer embeddings
};

/// Adds the first part of a layer, through attention, and returns attention's output, [H_q * d, rows].
ggml_tensor* add_attention(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                           const LayerRows& rows, AttentionSlot& slot);

/// Adds a transformer layer to a graph; returns the hidden states. Norm, Q, K, V (normalised if the model does that),
/// RoPE, attention, output projection, norm, feed-forward. Architectures omit, add and reorder norms, biases and scales
/// (model::Architecture).
ggml_tensor* add_layer(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                       const LayerRows& rows, AttentionSlot& slot);

/// Adds a layer's keys and values only, side by side: [2 * H_kv * d, rows].
ggml_tensor* add_keys_and_values(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                                 ggml_tensor* hidden, ggml_tensor* positions);

/// Adds the final norm: [n_embd, rows].
ggml_tensor* add_final_norm(ggml_context* context, const model::Weights& weights, ggml_tensor* hidden);

/// Adds the final norm, output matrix, scale and soft cap: logits [n_vocab, rows].
ggml_tensor* add_output(ggml_context* context, Linear& products, const model::Weights& weights, ggml_tensor* hidden);

}  // namespace winnow::network
