// SPDX-License-Identifier: Apache-2.0
#include "network/layer_graph.h"

#include "base/as_size.h"

namespace winnow::network {

namespace {

ggml_tensor* norm(ggml_context* context, const model::Hparams& h, ggml_tensor* x, ggml_tensor* weight) {
  return ggml_mul(context, ggml_rms_norm(context, x, h.rms_eps), weight);
}

ggml_tensor* linear(ggml_context* context, Linear& products, ggml_tensor* weight, ggml_tensor* bias, ggml_tensor* x) {
  ggml_tensor* const product = products.product(context, weight, x);
  return bias == nullptr ? product : ggml_add_inplace(context, product, bias);
}

/// [heads * d, rows] -> normalised where the model does that, rotated, [d, heads, rows] contiguous.
ggml_tensor* rotated_heads(ggml_context* context, const model::Weights& weights, int layer, ggml_tensor* x,
                           ggml_tensor* head_norm, ggml_tensor* positions) {
  const auto& h = weights.hparams();
  const auto& s = h.layer(layer);
  x = ggml_reshape_3d(context, x, s.head_dim, x->ne[0] / s.head_dim, x->ne[1]);
  if (head_norm != nullptr) x = norm(context, h, x, head_norm);
  const int mode = s.rope.pairing == Rope::Pairing::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  constexpr float kNoYarn = 0;
  constexpr float kBetaFast = 32;  // of YaRN alone
  constexpr float kBetaSlow = 1;
  return ggml_rope_ext(context, x, positions, weights.rope_factors(), s.rope.rotated_dims(), mode, h.ctx_train,
                       s.rope_freq_base, s.rope_freq_scale, kNoYarn, 1, kBetaFast, kBetaSlow);
}

void watch(const ggml_tensor& node, const AttentionSlot& slot, Worker worker) {
  for (const auto* const from : {node.src[0], node.src[1], node.src[2]}) {
    const auto size = as_size(ggml_nelements(from));
    slot.watch->look(slot.tensors.layer, {static_cast<const float*>(from->data), size}, worker);
  }
}

/// One stage of the attention slot: a custom node. ggml's threads meet at a barrier between two nodes.
void run_stage(ggml_tensor* node, int index, int count, void* stage_pointer) {
  const auto& stage = *static_cast<const AttentionSlot::Stage*>(stage_pointer);
  const int first = stage.number == 0 ? 0 : 1;  // later stages have the node before them as source 0
  auto tensors = stage.slot->tensors;
  tensors.q = static_cast<const float*>(node->src[first]->data);
  tensors.k = static_cast<const float*>(node->src[first + 1]->data);
  tensors.v = static_cast<const float*>(node->src[first + 2]->data);
  tensors.out = static_cast<float*>(node->data);
  if (stage.number == 0) watch(*node, *stage.slot, Worker{index, count});
  (*stage.slot->attention)->stage(stage.number, tensors, Worker{index, count});
}

ggml_tensor* add_attention(ggml_context* context, const model::LayerSpec& s, AttentionSlot& slot, ggml_tensor* q,
                           ggml_tensor* k, ggml_tensor* v) {
  ggml_tensor* inputs[] = {q, k, v};
  ggml_tensor* out = nullptr;
  for (int i = 0; i < AttentionOp::kStages; ++i) {
    slot.stages[i] = {&slot, i};
    out = i == 0 ? ggml_custom_4d(context, GGML_TYPE_F32, static_cast<std::int64_t>(s.n_head) * s.head_dim,
                                  slot.tensors.rows, 1, 1, inputs, 3, run_stage, GGML_N_TASKS_MAX, &slot.stages[i])
                 : ggml_custom_inplace(context, out, inputs, 3, run_stage, GGML_N_TASKS_MAX, &slot.stages[i]);
  }
  return out;
}

ggml_tensor* feed_forward(ggml_context* context, Linear& products, const model::Hparams& h,
                          const model::LayerWeights& w, ggml_tensor* x) {
  ggml_tensor* const gate = products.product(context, w.ffn_gate, x);
  ggml_tensor* const up = products.product(context, w.ffn_up, x);
  ggml_tensor* const gated = h.activation == model::Activation::silu ? ggml_swiglu_split(context, gate, up)
                                                                     : ggml_geglu_split(context, gate, up);
  return products.product(context, w.ffn_down, gated);
}

}  // namespace

ggml_tensor* add_layer(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                       ggml_tensor* hidden, ggml_tensor* positions, AttentionSlot& slot) {
  const auto& h = weights.hparams();
  const auto& w = weights.layer(layer);
  slot.tensors.layer = layer;
  slot.tensors.rows = static_cast<int>(hidden->ne[1]);
  ggml_tensor* const x = norm(context, h, hidden, w.attn_norm);
  const auto rotated = [&](ggml_tensor* projected, ggml_tensor* head_norm) {
    return rotated_heads(context, weights, layer, projected, head_norm, positions);
  };
  ggml_tensor* const q = rotated(linear(context, products, w.wq, w.bq, x), w.q_norm);
  ggml_tensor* const k = rotated(linear(context, products, w.wk, w.bk, x), w.k_norm);
  ggml_tensor* const v = linear(context, products, w.wv, w.bv, x);
  ggml_tensor* const attended = add_attention(context, h.layer(layer), slot, q, k, v);
  hidden = ggml_add_inplace(context, hidden, linear(context, products, w.wo, w.bo, attended));
  return ggml_add_inplace(context, hidden, feed_forward(context, products, h, w, norm(context, h, hidden, w.ffn_norm)));
}

ggml_tensor* add_keys_and_values(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                                 ggml_tensor* hidden, ggml_tensor* positions) {
  const auto& w = weights.layer(layer);
  ggml_tensor* const x = norm(context, weights.hparams(), hidden, w.attn_norm);
  ggml_tensor* const projected = linear(context, products, w.wk, w.bk, x);
  ggml_tensor* const k = rotated_heads(context, weights, layer, projected, w.k_norm, positions);
  ggml_tensor* const v = linear(context, products, w.wv, w.bv, x);
  return ggml_concat(context, ggml_reshape_2d(context, k, v->ne[0], v->ne[1]), v, 0);
}

ggml_tensor* add_output(ggml_context* context, Linear& products, const model::Weights& weights, ggml_tensor* hidden) {
  return products.product(context, weights.output(), norm(context, weights.hparams(), hidden, weights.output_norm()));
}

}  // namespace winnow::network
