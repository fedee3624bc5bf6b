// SPDX-License-Identifier: Apache-2.0
#include "model/layer_weights.h"

#include <spdlog/fmt/fmt.h>

#include "base/as_size.h"
#include "model/tensor_loader.h"

namespace winnow::model {

namespace {

/// Loads the tensors of one layer.
class LayerLoader {
 public:
  LayerLoader(TensorLoader& loader, const Hparams& h, int layer)
      : loader_(loader),
        h_(h),
        spec_(h.layer(layer)),
        layer_(layer),
        embd_(h.n_embd),
        q_(std::int64_t{spec_.n_head} * spec_.head_dim),
        kv_(std::int64_t{spec_.n_head_kv} * spec_.head_dim) {}

  LayerWeights load(const LayerEmbedding& embedding_of_all) {
    w_.embedding = embedding_of_all;
    const Architecture& a = *h_.architecture;
    w_.attention_norm = norm(a.attention_norm);
    queries_keys_values();
    w_.o = linear("attn_output", q_, embd_);
    head_norms();
    w_.attention_post_norm = norm(a.attention_post_norm);
    w_.ffn_norm = norm(a.ffn_norm);
    feed_forward();
    w_.ffn_post_norm = norm(a.ffn_post_norm);
    if (h_.n_embd_layer > 0) embedding();
    if (a.layer_scales && loader_.has(name("layer_output_scale.weight")))
      w_.scale = loader_.mapped_f32(name("layer_output_scale.weight"), {1});
    return w_;
  }

 private:
  std::string name(std::string_view part) const { return fmt::format("blk.{}.{}", layer_, part); }

  Affine norm(std::string_view part) { return part.empty() ? Affine{} : load_norm(loader_, h_, name(part)); }

  /// A matrix, with its bias if the architecture has biases and the file has one.
  Affine linear(std::string_view part, std::int64_t in, std::int64_t out) {
    const std::string base = name(part);
    return {loader_.matrix(base + ".weight", in, out),
            h_.architecture->biases ? loader_.mapped_if_there(base + ".bias", {out}) : nullptr};
  }

  /// Loads Q, K and V from one fused matrix or three, and likewise their biases.
  void queries_keys_values() {
    if (layer_ >= h_.n_kv_layer) {
      w_.q = {loader_.matrix(name("attn_q.weight"), embd_, q_), loader_.mapped_if_there(name("attn_q.bias"), {q_})};
      return;
    }
    Affine* const parts[] = {&w_.q, &w_.k, &w_.v};
    const char* const names[] = {"attn_q", "attn_k", "attn_v"};
    const std::vector<std::int64_t> outs{q_, kv_, kv_};
    const std::string fused = name("attn_qkv");
    const bool one = loader_.has(fused + ".weight");
    const bool one_bias = one && loader_.has(fused + ".bias");
    const auto matrices = one ? loader_.matrices(fused + ".weight", embd_, outs) : std::vector<ggml_tensor*>{};
    const auto biases = one_bias ? loader_.mapped_parts(fused + ".bias", outs) : std::vector<ggml_tensor*>{};
    for (std::size_t i = 0; i < outs.size(); ++i) {
      const std::string own = name(names[i]);
      const bool optional = parts[i] == &w_.v && h_.architecture->keys_as_values;
      if (optional && !one && !loader_.has(own + ".weight")) continue;
      parts[i]->weight = one ? matrices[i] : loader_.matrix(own + ".weight", embd_, outs[i]);
      parts[i]->bias = one_bias ? biases[i] : loader_.mapped_if_there(own + ".bias", {outs[i]});
    }
  }

  void head_norms() {
    const std::int64_t d = spec_.head_dim;
    if (h_.architecture->qk_norm_optional && !loader_.has(name("attn_q_norm.weight"))) return;
    const auto load = [this](const TensorLoader::Shape& of_q, const TensorLoader::Shape& of_k) {
      w_.q_norm = loader_.mapped_f32(name("attn_q_norm.weight"), of_q);
      if (layer_ < h_.n_kv_layer) w_.k_norm = loader_.mapped_f32(name("attn_k_norm.weight"), of_k);
    };
    switch (h_.qk_norm()) {
      case QkNorm::none:
        return;
      case QkNorm::head:
      case QkNorm::head_rotated:
        return load({d}, {d});
      case QkNorm::row:
        return load({q_}, {kv_});
      case QkNorm::head_by_mean:
        return load({d, spec_.n_head}, {d, spec_.n_head_kv});
    }
  }

  void feed_forward() {
    if (spec_.n_expert > 0) return experts();
    dense();
  }

  void dense() {
    const std::int64_t ff = spec_.n_ff;
    if (h_.architecture->fused_up) {
      gate_and_up("ffn_up.weight", ff);
    } else {
      if (h_.architecture->activation != Activation::gelu) w_.gate = linear("ffn_gate", embd_, ff);
      w_.up = linear("ffn_up", embd_, ff);
    }
    w_.down = linear("ffn_down", ff, embd_);
  }

  /// Loads gate and up from one fused tensor.
  void gate_and_up(std::string_view part, std::int64_t ff) {
    const auto both = loader_.matrices(name(part), embd_, {ff, ff});
    w_.gate.weight = both[0];
    w_.up.weight = both[1];
  }

  void experts() {
    const std::int64_t ff = spec_.n_ff_expert;
    const std::int64_t count = spec_.n_expert;
    auto& e = w_.experts;
    const auto& traits = h_.architecture->experts;
    e.router.weight = loader_.mapped(name("ffn_gate_inp.weight"), {embd_, count});
    if (traits.biases) e.router.bias = loader_.mapped_f32(name("ffn_gate_inp.bias"), {count});
    if (traits.choice_bias) e.choice_bias = loader_.mapped_f32(name("exp_probs_b.bias"), {count});
    const bool fused = loader_.has(name("ffn_gate_up_exps.weight"));
    if (!fused) e.gate = expert_matrices("ffn_gate_exps", embd_, ff);
    e.up = fused ? expert_matrices("ffn_gate_up_exps", embd_, 2 * ff) : expert_matrices("ffn_up_exps", embd_, ff);
    e.down = expert_matrices("ffn_down_exps", ff, embd_);
    if (traits.router_norm) e.router_scale = loader_.mapped_f32(name("ffn_gate_inp.scale"), {embd_});
    if (traits.scales && loader_.has(name("ffn_down_exps.scale")))
      e.scales = loader_.mapped_f32(name("ffn_down_exps.scale"), {count});
    if (traits.shared == Experts::Shared::feed_forward) return beside_feed_forward();
    if (spec_.n_ff_shared > 0) shared_expert();
  }

  ExpertMatrices expert_matrices(std::string_view part, std::int64_t in, std::int64_t out) {
    const std::string base = name(part);
    ExpertMatrices matrices = loader_.experts(base + ".weight", {in, out, spec_.n_expert});
    if (h_.architecture->experts.biases) matrices.bias = loader_.mapped_f32(base + ".bias", {out, spec_.n_expert});
    return matrices;
  }

  void embedding() {
    w_.embedding.gate = loader_.matrix(name("inp_gate.weight"), embd_, h_.n_embd_layer);
    w_.embedding.out = loader_.matrix(name("proj.weight"), h_.n_embd_layer, embd_);
    w_.embedding.post_norm = norm("post_norm");
  }

  void beside_feed_forward() {
    auto& e = w_.experts;
    e.norm = norm("pre_ffw_norm_2");
    e.post_norm = norm("post_ffw_norm_2");
    e.shared_post_norm = norm("post_ffw_norm_1");
    dense();
  }

  void shared_expert() {
    const std::int64_t ff = spec_.n_ff_shared;
    if (h_.architecture->experts.fused_shared) {
      gate_and_up("ffn_up_shexp.weight", ff);
    } else {
      w_.gate.weight = loader_.matrix(name("ffn_gate_shexp.weight"), embd_, ff);
      w_.up.weight = loader_.matrix(name("ffn_up_shexp.weight"), embd_, ff);
    }
    w_.down.weight = loader_.matrix(name("ffn_down_shexp.weight"), ff, embd_);
    if (h_.architecture->experts.shared == Experts::Shared::gated)
      w_.experts.shared_gate = loader_.mapped_f32(name("ffn_gate_inp_shexp.weight"), {embd_});
  }

  TensorLoader& loader_;
  const Hparams& h_;
  const LayerSpec& spec_;
  int layer_;
  std::int64_t embd_;
  std::int64_t q_;
  std::int64_t kv_;
  LayerWeights w_;
};

std::vector<const ggml_tensor*> those_there(std::initializer_list<const ggml_tensor*> tensors) {
  std::vector<const ggml_tensor*> out;
  for (const auto* const tensor : tensors) {
    if (tensor != nullptr) out.push_back(tensor);
  }
  return out;
}

}  // namespace

std::vector<const ggml_tensor*> LayerWeights::all() const {
  return those_there({attention_norm.weight,
                      attention_norm.bias,
                      q.weight,
                      q.bias,
                      k.weight,
                      k.bias,
                      v.weight,
                      v.bias,
                      o.weight,
                      o.bias,
                      q_norm,
                      k_norm,
                      attention_post_norm.weight,
                      attention_post_norm.bias,
                      ffn_norm.weight,
                      ffn_norm.bias,
                      experts.norm.weight,
                      experts.norm.bias,
                      experts.router_scale,
                      experts.router.weight,
                      experts.router.bias,
                      experts.choice_bias,
                      experts.gate.of_many_rows,
                      experts.gate.bias,
                      experts.up.of_many_rows,
                      experts.up.bias,
                      experts.down.of_many_rows,
                      experts.down.bias,
                      experts.scales,
                      experts.post_norm.weight,
                      experts.post_norm.bias,
                      experts.shared_gate,
                      experts.shared_post_norm.weight,
                      experts.shared_post_norm.bias,
                      gate.weight,
                      gate.bias,
                      up.weight,
                      up.bias,
                      down.weight,
                      down.bias,
                      ffn_post_norm.weight,
                      ffn_post_norm.bias,
                      embedding.of_embedding,
                      embedding.norm,
                      embedding.gate,
                      embedding.out,
                      embedding.post_norm.weight,
                      embedding.post_norm.bias,
                      scale});
}

std::vector<const ggml_tensor*> LayerWeights::matrices() const {
  return those_there({q.weight, k.weight, v.weight, o.weight, gate.weight, up.weight, down.weight,
                      embedding.of_embedding, embedding.gate, embedding.out});
}

LayerWeights load_layer(TensorLoader& loader, const Hparams& hparams, int layer, const LayerEmbedding& embedding) {
  return LayerLoader(loader, hparams, layer).load(embedding);
}

std::vector<LayerEmbedding> load_layer_embeddings(TensorLoader& loader, const Hparams& hparams) {
  const std::int64_t length = hparams.n_embd_layer;
  if (length == 0) return {};
  const auto products = loader.matrices("per_layer_model_proj.weight", hparams.n_embd,
                                        std::vector<std::int64_t>(as_size(hparams.n_layer), length));
  ggml_tensor* const norm = loader.mapped_f32("per_layer_proj_norm.weight", {length});
  std::vector<LayerEmbedding> out;
  for (ggml_tensor* const product : products) {
    out.emplace_back().of_embedding = product;
    out.back().norm = norm;
  }
  return out;
}

Affine load_norm(TensorLoader& loader, const Hparams& hparams, const std::string& name) {
  return {
      loader.mapped(name + ".weight", {hparams.n_embd}),
      hparams.architecture->norm == Norm::mean ? loader.mapped_if_there(name + ".bias", {hparams.n_embd}) : nullptr};
}

}  // namespace winnow::model
