// SPDX-License-Identifier: Apache-2.0
#include "network/layer_graph.h"

#include <cmath>

#include "base/as_size.h"
#include "network/activation.h"
#include "network/mixture.h"

namespace winnow::network {

namespace {

using model::Affine;
using model::Norm;
using model::QkNorm;

ggml_tensor* normalised(ggml_context* context, const model::Hparams& h, Norm kind, ggml_tensor* x) {
  return kind == Norm::rms ? ggml_rms_norm(context, x, h.norm_eps) : ggml_norm(context, x, h.norm_eps);
}

/// Returns x unchanged if the network has no such norm.
ggml_tensor* norm(ggml_context* context, const model::Hparams& h, ggml_tensor* x, const Affine& by) {
  if (by.weight == nullptr) return x;
  x = ggml_mul(context, normalised(context, h, h.architecture->norm, x), by.weight);
  return by.bias == nullptr ? x : ggml_add_inplace(context, x, by.bias);
}

ggml_tensor* linear(ggml_context* context, Linear& products, const Affine& by, ggml_tensor* x) {
  ggml_tensor* const product = products.product(context, by.weight, x);
  return by.bias == nullptr ? product : ggml_add_inplace(context, product, by.bias);
}

ggml_tensor* scaled(ggml_context* context, ggml_tensor* x, float by) {
  return by == 1 ? x : ggml_scale_inplace(context, x, by);
}

/// Queries or keys of all heads, [heads * d, rows] -> [d, heads, rows], with the norms that come before the rotation.
ggml_tensor* normed_heads(ggml_context* context, const model::Hparams& h, int head_dim, ggml_tensor* x,
                          ggml_tensor* weight) {
  const auto kind = weight == nullptr ? QkNorm::none : h.qk_norm();
  if (kind == QkNorm::row) x = ggml_mul(context, normalised(context, h, Norm::rms, x), weight);
  x = ggml_reshape_3d(context, x, head_dim, x->ne[0] / head_dim, x->ne[1]);
  if (kind == QkNorm::head) return ggml_mul(context, normalised(context, h, Norm::rms, x), weight);
  if (kind == QkNorm::head_by_mean) return ggml_mul(context, normalised(context, h, Norm::mean, x), weight);
  return x;
}

/// Rotates by the divisors and magnitude of any RoPE scheme: ggml turns pair i by rope_base^(-2i / D) over its divisor,
/// and scales it by the magnitude.
ggml_tensor* rotated(ggml_context* context, const model::Weights& weights, int layer, ggml_tensor* x,
                     ggml_tensor* positions) {
  const auto& s = weights.hparams().layer(layer);
  if (s.rope.frequency.empty()) return x;
  const int mode = s.rope.pairing == Rope::Pairing::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  constexpr float kUnscaled = 1;
  constexpr float kNoYarn = 0;
  constexpr int kContext = 1;  // this and the next two only matter for ggml's YaRN
  constexpr float kBetaFast = 32;
  constexpr float kBetaSlow = 1;
  return ggml_rope_ext(context, x, positions, weights.rope_divisors(layer), s.rope.rotated_dims(), mode, kContext,
                       s.rope_base, kUnscaled, kNoYarn, s.rope.magnitude, kBetaFast, kBetaSlow);
}

/// Soft cap of logits, in place; 0: none.
ggml_tensor* capped(ggml_context* context, ggml_tensor* logits, float cap) {
  if (cap == 0) return logits;
  ggml_tensor* const bent = ggml_tanh_inplace(context, ggml_scale_inplace(context, logits, 1 / cap));
  return ggml_scale_inplace(context, bent, cap);
}

/// Computes the inputs of a layer's attention.
struct Projections {
  ggml_context* context;
  Linear& products;
  const model::Weights& weights;
  int layer;
  const LayerRows& rows;
  ggml_tensor* x;

  const model::LayerWeights& w() const { return weights.layer(layer); }
  ggml_tensor* queries() const {
    ggml_tensor* const q = heads(linear(context, products, w().q, x), w().q_norm);
    return rows.temperatures == nullptr ? q : ggml_mul_inplace(context, q, rows.temperatures);
  }

  struct KeysAndValues {
    ggml_tensor* keys;
    ggml_tensor* values;  ///< [heads * d, rows]
  };
  /// Null in KV-sharing layers.
  KeysAndValues keys_and_values() const {
    if (w().k.weight == nullptr) return {nullptr, nullptr};
    ggml_tensor* const k = linear(context, products, w().k, x);
    ggml_tensor* v = w().v.weight == nullptr ? k : linear(context, products, w().v, x);
    if (const auto& h = weights.hparams(); h.architecture->value_norm) {
      const int d = h.layer(layer).head_dim;
      v = normalised(context, h, Norm::rms, ggml_reshape_3d(context, v, d, v->ne[0] / d, v->ne[1]));
      v = ggml_reshape_2d(context, v, k->ne[0], k->ne[1]);
    }
    return {heads(k, w().k_norm), v};
  }

  /// Queries or keys, normalised if the model does that, and rotated, [d, heads, rows] contiguous.
  ggml_tensor* heads(ggml_tensor* projected, ggml_tensor* head_norm) const {
    const auto& h = weights.hparams();
    ggml_tensor* const turned =
        rotated(context, weights, layer, normed_heads(context, h, h.layer(layer).head_dim, projected, head_norm),
                rows.positions);
    if (h.qk_norm() != QkNorm::head_rotated) return turned;
    return ggml_mul(context, normalised(context, h, Norm::rms, turned), head_norm);
  }
};

void check_finite(const ggml_tensor& node, const AttentionSlot& slot, Worker worker) {
  for (const auto* const from : {node.src[1], node.src[2], node.src[3]}) {
    if (from == nullptr) continue;
    const auto size = as_size(ggml_nelements(from));
    slot.finite->check(slot.tensors.layer, {static_cast<const float*>(from->data), size}, worker);
  }
}

AttentionOp::Tensors tensors_of(const ggml_tensor& node, const AttentionSlot::Phase& phase) {
  auto tensors = phase.slot->tensors;
  const auto data_of = [&](int source) {
    const ggml_tensor* const from = node.src[source];
    return from == nullptr ? nullptr : static_cast<const float*>(from->data);
  };
  if (phase.number == 0) tensors.input = data_of(0);  // in later phases, source 0 is the previous node
  tensors.q = data_of(1);
  tensors.k = data_of(2);
  tensors.v = data_of(3);
  tensors.out = static_cast<float*>(node.data);
  return tensors;
}

/// Custom node of one phase of the attention slot. There is a barrier between any two nodes.
void run_phase(ggml_tensor* node, int index, int count, void* phase_pointer) {
  const auto& phase = *static_cast<const AttentionSlot::Phase*>(phase_pointer);
  const auto tensors = tensors_of(*node, phase);
  if (phase.number == 0) check_finite(*node, *phase.slot, Worker{index, count});
  (*phase.slot->attention)->phase(phase.number, tensors, Worker{index, count});
}

/// Adds the phases of attention of rows x. Without k and v, the queries read keys and values stored by another layer.
ggml_tensor* add_phases(ggml_context* context, const model::LayerSpec& s, AttentionSlot& slot, ggml_tensor* x,
                        ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
  ggml_tensor* inputs[] = {x, q, k, v};
  const int count = k == nullptr ? 2 : 4;
  ggml_tensor* out = nullptr;
  for (int i = 0; i < AttentionOp::kPhases; ++i) {
    slot.phases[i] = {&slot, i};
    out = i == 0
              ? ggml_custom_4d(context, GGML_TYPE_F32, static_cast<std::int64_t>(s.n_head) * s.head_dim,
                               slot.tensors.rows, 1, 1, inputs, count, run_phase, GGML_N_TASKS_MAX, &slot.phases[i])
              : ggml_custom_inplace(context, out, inputs + 1, count - 1, run_phase, GGML_N_TASKS_MAX, &slot.phases[i]);
    if (i == 0) slot.first = out;
  }
  return out;
}

ggml_tensor* dense(ggml_context* context, Linear& products, const model::Hparams& h, const model::LayerWeights& w,
                   ggml_tensor* x) {
  ggml_tensor* const gate = w.gate.weight == nullptr ? nullptr : linear(context, products, w.gate, x);
  ggml_tensor* const up = linear(context, products, w.up, x);
  return linear(context, products, w.down, activated(context, h.architecture->activation, gate, up));
}

/// Input of a router: rows normalised by rms, divided by sqrt(n_embd), times the router's weights.
ggml_tensor* for_router(ggml_context* context, const model::Hparams& h, ggml_tensor* hidden, ggml_tensor* weights) {
  ggml_tensor* const x = normalised(context, h, Norm::rms, hidden);
  return ggml_mul_inplace(context, scaled(context, x, 1 / std::sqrt(static_cast<float>(h.n_embd))), weights);
}

/// x: `hidden` after its norm.
ggml_tensor* feed_forward(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                          ggml_tensor* hidden, ggml_tensor* x) {
  const auto& h = weights.hparams();
  const auto& w = weights.layer(layer);
  const auto& e = w.experts;
  if (e.router.weight == nullptr) return dense(context, products, h, w, x);
  ggml_tensor* const read = e.norm.weight == nullptr ? x : norm(context, h, hidden, e.norm);
  ggml_tensor* const routed = e.router_scale == nullptr ? read : for_router(context, h, hidden, e.router_scale);
  ggml_tensor* const mixed = mixture(context, products, h, w, h.layer(layer), {read, routed});
  ggml_tensor* const sum = norm(context, h, mixed, e.post_norm);
  if (w.up.weight == nullptr) return sum;
  ggml_tensor* shared = dense(context, products, h, w, x);
  if (e.shared_gate != nullptr) shared = gated(context, products, shared, e.shared_gate, x);
  return ggml_add_inplace(context, sum, norm(context, h, shared, e.shared_post_norm));
}

/// Contribution of a layer's own token embeddings to its hidden states.
ggml_tensor* of_layer_embedding(ggml_context* context, Linear& products, const model::Hparams& h,
                                const model::LayerEmbedding& by, const LayerRows& rows, ggml_tensor* hidden) {
  ggml_tensor* own = products.product(context, by.of_embedding, rows.embedded);
  own = normalised(context, h, Norm::rms, scaled(context, own, 1 / std::sqrt(static_cast<float>(h.n_embd))));
  own = ggml_add_inplace(context, ggml_mul_inplace(context, own, by.norm), rows.own);
  ggml_tensor* const gate = ggml_gelu_inplace(context, products.product(context, by.gate, hidden));
  ggml_tensor* const gated = ggml_mul_inplace(context, gate, scaled(context, own, std::sqrt(0.5F)));
  return norm(context, h, products.product(context, by.out, gated), by.post_norm);
}

/// Adds a layer's part through attention over rows x, which are the hidden states after the first norm.
ggml_tensor* attended(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                      const LayerRows& rows, ggml_tensor* x, AttentionSlot& slot) {
  slot.tensors.layer = layer;
  slot.tensors.rows = static_cast<int>(rows.hidden->ne[1]);
  slot.tensors.width = static_cast<int>(rows.hidden->ne[0]);
  const Projections from{context, products, weights, layer, rows, x};
  ggml_tensor* const q = from.queries();
  const auto [k, v] = from.keys_and_values();
  return add_phases(context, weights.hparams().layer(layer), slot, x, q, k, v);
}

}  // namespace

AttentionOp::Tensors tensors_of(const AttentionSlot& slot) { return tensors_of(*slot.first, slot.phases[0]); }

bool attend_on_device(const AttentionSlot& slot) {
  const auto tensors = tensors_of(slot);
  const auto result = (*slot.attention)->attend_on_device(tensors);
  if (result == device::OnDevice::not_finite) slot.finite->found(tensors.layer);
  return result != device::OnDevice::not_done;
}

ggml_tensor* add_attention(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                           const LayerRows& rows, AttentionSlot& slot) {
  ggml_tensor* const x = norm(context, weights.hparams(), rows.hidden, weights.layer(layer).attention_norm);
  return attended(context, products, weights, layer, rows, x, slot);
}

ggml_tensor* add_layer(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                       const LayerRows& rows, AttentionSlot& slot) {
  ggml_tensor* hidden = rows.hidden;
  const auto& h = weights.hparams();
  const auto& w = weights.layer(layer);
  const auto add = [&](ggml_tensor* branch, const Affine& post_norm) {
    branch = norm(context, h, branch, post_norm);
    hidden = ggml_add_inplace(context, hidden, scaled(context, branch, h.residual_scale));
  };
  ggml_tensor* const x = norm(context, h, hidden, w.attention_norm);
  ggml_tensor* const attention =
      linear(context, products, w.o, attended(context, products, weights, layer, rows, x, slot));
  if (h.architecture->feed_forward == model::Architecture::FeedForward::beside_attention) {
    add(ggml_add_inplace(context, attention, feed_forward(context, products, weights, layer, hidden, x)), {});
    return hidden;
  }
  add(attention, w.attention_post_norm);
  ggml_tensor* const between = norm(context, h, hidden, w.ffn_norm);
  add(feed_forward(context, products, weights, layer, hidden, between), w.ffn_post_norm);
  if (rows.own != nullptr)
    hidden = ggml_add_inplace(context, hidden, of_layer_embedding(context, products, h, w.embedding, rows, hidden));
  return w.scale == nullptr ? hidden : ggml_mul_inplace(context, hidden, w.scale);
}

ggml_tensor* add_keys_and_values(ggml_context* context, Linear& products, const model::Weights& weights, int layer,
                                 ggml_tensor* hidden, ggml_tensor* positions) {
  ggml_tensor* const x = norm(context, weights.hparams(), hidden, weights.layer(layer).attention_norm);
  const LayerRows rows{hidden, positions};
  const Projections from{context, products, weights, layer, rows, x};
  const auto [k, v] = from.keys_and_values();
  return ggml_concat(context, ggml_reshape_2d(context, k, v->ne[0], v->ne[1]), v, 0);
}

ggml_tensor* add_final_norm(ggml_context* context, const model::Weights& weights, ggml_tensor* hidden) {
  return norm(context, weights.hparams(), hidden, weights.output_norm());
}

ggml_tensor* add_output(ggml_context* context, Linear& products, const model::Weights& weights, ggml_tensor* hidden) {
  const auto& h = weights.hparams();
  ggml_tensor* const x = add_final_norm(context, weights, hidden);
  return capped(context, scaled(context, linear(context, products, weights.output(), x), h.logit_scale), h.final_cap);
}

}  // namespace winnow::network
