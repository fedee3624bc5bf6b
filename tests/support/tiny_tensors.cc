// SPDX-License-Identifier: Apache-2.0
#include "support/tiny_tensors.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::test {

namespace {

constexpr float kLeastNorm = 0.5F;
constexpr float kMostNorm = 1.5F;
constexpr float kLeastSink = 0;  // the largest logits are around 10, with Granite's scale around 3
constexpr float kMostSink = 8;

/// Draws values in the order of the tensors. Add a new tensor where it does not change those of existing files.
class Tensors {
 public:
  Tensors(const TinyModel& model, gguf_context* gguf, ggml_context* context)
      : m_(model), arch_(tiny_architecture(model.arch)), random_(model.seed), gguf_(gguf), context_(context) {
    std::normal_distribution<float> values;
    for (int i = 0; i < m_.distinct; ++i) repeated_.push_back(values(random_));
  }

  void add_all() {
    matrix("token_embd.weight", m_.n_embd, {{m_.n_vocab, 1}});
    norm("output_norm");
    if (arch_.output == OutputMatrix::untied || !m_.tied) matrix("output.weight", m_.n_embd, {{m_.n_vocab, 1}});
    if (has_bias(&Biases::output)) bias("output.bias", m_.n_vocab);
    const int pairs = m_.rotated() / 2;
    if (arch_.rope_of_globals) rope_of_globals(pairs);
    if (m_.rope_factors) vector("rope_freqs.weight", {pairs}, 1, 8);
    if (m_.longrope) {
      vector("rope_factors_long.weight", {pairs}, 1, 8);
      vector("rope_factors_short.weight", {pairs}, 1, 2);
    }
    if (m_.layer_embedding > 0) layer_embeddings();
    for (int i = 0; i < m_.n_layer; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      attention(block, m_.layer(i), i);
      feed_forward(block, i);
      if (m_.layer_embedding > 0) layer_embedding(block);
      if (arch_.layer_scales) vector(block + "layer_output_scale.weight", {1}, kLeastNorm, kMostNorm);
    }
  }

 private:
  void layer_embeddings() {
    const int all = m_.layer_embedding * m_.n_layer;
    matrix("per_layer_token_embd.weight", all, {{m_.n_vocab, std::sqrt(static_cast<float>(m_.n_layer))}});
    matrix("per_layer_model_proj.weight", m_.n_embd, {{all, 1}});
    vector("per_layer_proj_norm.weight", {m_.layer_embedding}, kLeastNorm, kMostNorm);
  }

  void layer_embedding(const std::string& block) {
    matrix(block + "inp_gate.weight", m_.n_embd, {{m_.layer_embedding, 1}});
    matrix(block + "proj.weight", m_.layer_embedding, {{m_.n_embd, 1}});
    norm(block + "post_norm");
  }

  /// The factor of the other pairs is so large that they hardly rotate.
  void rope_of_globals(int pairs) {
    std::vector<float> factors(static_cast<std::size_t>(pairs), 1e30F);
    std::fill_n(factors.begin(), pairs / 4, 1.0F);
    add(filled(ggml_new_tensor_1d(context_, GGML_TYPE_F32, pairs), factors), "rope_freqs.weight");
  }

  void attention(const std::string& block, const TinyLayer& layer, int number) {
    const int q = layer.n_head * layer.head_dim;
    const int kv = layer.n_head_kv * layer.head_dim;
    const bool fused = m_.qkv == QkvTensors::fused || (m_.qkv == QkvTensors::as_usual && arch_.fused_qkv);
    norm_if_any(block, arch_.pre_attention);
    // With a scale of 2 the logits are large enough that attention is not flat.
    if (fused) {
      matrix(block + "attn_qkv.weight", m_.n_embd, {{q, 2}, {kv, 2}, {kv, 1}});
    } else {
      matrix(block + "attn_q.weight", m_.n_embd, {{q, 2}});
      if (m_.has_keys(number)) matrix(block + "attn_k.weight", m_.n_embd, {{kv, 2}});
      if (m_.has_values(number)) matrix(block + "attn_v.weight", m_.n_embd, {{kv, 1}});
    }
    matrix(block + "attn_output.weight", q, {{m_.n_embd, 1}});
    if (has_bias(&Biases::qkv)) {
      if (fused) {
        bias(block + "attn_qkv.bias", q + 2 * kv);
      } else {
        bias(block + "attn_q.bias", q);
        bias(block + "attn_k.bias", kv);
        bias(block + "attn_v.bias", kv);
      }
    }
    if (has_bias(&Biases::attn_output)) bias(block + "attn_output.bias", m_.n_embd);
    if (m_.n_layer >= arch_.qk_norm_from_layers && (m_.optional_norms || !arch_.qk_norm_optional)) {
      qk_norm(block + "attn_q_norm.weight", layer.n_head, layer.head_dim);
      if (m_.has_keys(number)) qk_norm(block + "attn_k_norm.weight", layer.n_head_kv, layer.head_dim);
    }
    if (arch_.sinks) vector(block + "attn_sinks.weight", {layer.n_head}, kLeastSink, kMostSink);
    norm_if_any(block, arch_.post_attention);
  }

  void feed_forward(const std::string& block, int layer) {
    const int n_ff = m_.layer(layer).n_ff;
    norm_if_any(block, arch_.pre_ffn);
    if (m_.has_experts(layer)) experts(block);
    if (m_.has_experts(layer) && arch_.shared != SharedExpert::feed_forward) return;
    if (arch_.ffn == FfnKind::gated) matrix(block + "ffn_gate.weight", m_.n_embd, {{n_ff, 1}});
    if (arch_.ffn == FfnKind::fused) {
      matrix(block + "ffn_up.weight", m_.n_embd, {{n_ff, 1}, {n_ff, 1}});
    } else {
      matrix(block + "ffn_up.weight", m_.n_embd, {{n_ff, 1}});
    }
    matrix(block + "ffn_down.weight", n_ff, {{m_.n_embd, 1}});
    if (has_bias(&Biases::ffn)) {
      if (arch_.ffn == FfnKind::gated) bias(block + "ffn_gate.bias", n_ff);
      bias(block + "ffn_up.bias", n_ff);
      bias(block + "ffn_down.bias", m_.n_embd);
    }
    norm_if_any(block, arch_.post_ffn);
  }

  void experts(const std::string& block) {
    const int ff = m_.expert_width();
    router(block + "ffn_gate_inp.weight");
    if (m_.gate_up_experts) {
      gate_and_up(block + "ffn_gate_up_exps.weight", m_.n_embd, ff);
    } else {
      of_experts(block + "ffn_gate_exps.weight", m_.n_embd, ff);
      of_experts(block + "ffn_up_exps.weight", m_.n_embd, ff);
    }
    of_experts(block + "ffn_down_exps.weight", ff, m_.n_embd);
    if (arch_.expert_biases) expert_biases(block, ff);
    if (arch_.choice_bias) bias(block + "exp_probs_b.bias", m_.experts());
    if (arch_.scaled_experts) {
      vector(block + "ffn_gate_inp.scale", {m_.n_embd}, kLeastNorm, kMostNorm);
      vector(block + "ffn_down_exps.scale", {m_.experts()}, kLeastNorm, kMostNorm);
    }
    if (arch_.shared == SharedExpert::feed_forward) {
      for (const char* name : {"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"}) norm(block + name);
      return;
    }
    const int shared = m_.shared_width();
    if (shared == 0) return;
    if (arch_.shared == SharedExpert::gated) vector(block + "ffn_gate_inp_shexp.weight", {m_.n_embd}, -1, 1);
    if (arch_.fused_shared) {
      matrix(block + "ffn_up_shexp.weight", m_.n_embd, {{shared, 1}, {shared, 1}});
    } else {
      matrix(block + "ffn_gate_shexp.weight", m_.n_embd, {{shared, 1}});
      matrix(block + "ffn_up_shexp.weight", m_.n_embd, {{shared, 1}});
    }
    matrix(block + "ffn_down_shexp.weight", shared, {{m_.n_embd, 1}});
  }

  /// The biases of gate and up reach beyond 7, where their outputs are clamped.
  void expert_biases(const std::string& block, int ff) {
    constexpr float kMostBias = 10;
    bias(block + "ffn_gate_inp.bias", m_.experts());
    vector(block + "ffn_gate_exps.bias", {ff, m_.experts()}, -kMostBias, kMostBias);
    vector(block + "ffn_up_exps.bias", {ff, m_.experts()}, -kMostBias, kMostBias);
    vector(block + "ffn_down_exps.bias", {m_.n_embd, m_.experts()}, -1, 1);
  }

  bool has_bias(bool Biases::*of) const {
    return arch_.biases.*of || (m_.optional_biases && arch_.optional_biases.*of);
  }
  void bias(const std::string& name, int n) { vector(name, {n}, -1, 1); }

  void norm(const std::string& name) {
    vector(name + ".weight", {m_.n_embd}, kLeastNorm, kMostNorm);
    if (arch_.norm == NormKind::layer_with_bias) bias(name + ".bias", m_.n_embd);
  }
  void norm_if_any(const std::string& block, std::string_view name) {
    if (!name.empty()) norm(block + std::string(name));
  }

  void qk_norm(const std::string& name, int heads, int dim) {
    if (arch_.qk_norm == QkNorm::of_heads) vector(name, {dim}, kLeastNorm, kMostNorm);
    if (arch_.qk_norm == QkNorm::of_rows) vector(name, {heads * dim}, kLeastNorm, kMostNorm);
    if (arch_.qk_norm == QkNorm::of_each_head) vector(name, {dim, heads}, kLeastNorm, kMostNorm);
  }

  /// Adds an f32 tensor of this shape that is not a matrix of weights.
  void vector(const std::string& name, const std::vector<std::int64_t>& shape, float least, float most) {
    ggml_tensor* const tensor = ggml_new_tensor(context_, GGML_TYPE_F32, static_cast<int>(shape.size()), shape.data());
    std::uniform_real_distribution<float> values(least, most);
    for (std::int64_t i = 0; i < ggml_nelements(tensor); ++i) static_cast<float*>(tensor->data)[i] = values(random_);
    add(tensor, name);
  }

  /// Rows of a matrix. Weights have the standard deviation scale / sqrt(in), so that with scale 1 products keep the
  /// size of their input.
  struct Outputs {
    int count;
    float scale;
  };

  /// Writes the parts one after the other, with the values that separate matrices would have.
  void matrix(const std::string& name, int in, const std::vector<Outputs>& parts) {
    std::int64_t rows = 0;
    for (const auto& part : parts) rows += part.count;
    ggml_tensor* const tensor = ggml_new_tensor_2d(context_, m_.type, in, rows);
    std::int64_t first = 0;
    for (const auto& part : parts) {
      auto values = weights(in, part.scale);
      draw(tensor, first, part.count, values);
      first += part.count;
    }
    add(tensor, name);
  }

  void of_experts(const std::string& name, int in, int out) {
    ggml_tensor* const tensor = ggml_new_tensor_3d(context_, m_.type, in, out, m_.experts());
    auto values = weights(in, 1);
    draw(tensor, 0, ggml_nrows(tensor), values);
    add(tensor, name);
  }

  /// Writes both in one tensor, one expert after the other, with the values that separate tensors would have.
  void gate_and_up(const std::string& name, int in, int out) {
    ggml_tensor* const tensor = ggml_new_tensor_3d(context_, m_.type, in, 2 * out, m_.experts());
    for (const int which : {0, 1}) {
      auto values = weights(in, 1);
      for (int i = 0; i < m_.experts(); ++i) draw(tensor, (2 * i + which) * out, out, values);
    }
    add(tensor, name);
  }

  void router(const std::string& name) {
    ggml_tensor* const tensor = ggml_new_tensor_2d(context_, GGML_TYPE_F32, m_.n_embd, m_.experts());
    auto values = weights(m_.n_embd, m_.router_scale);
    draw(tensor, 0, m_.experts(), values);
    add(tensor, name);
  }

  static std::normal_distribution<float> weights(int in, float scale) {
    return std::normal_distribution<float>(0, scale / std::sqrt(static_cast<float>(in)));
  }

  /// Draws `count` rows of a tensor, from row `first`, in pieces that fit into a processor's cache.
  void draw(ggml_tensor* tensor, std::int64_t first, std::int64_t count, std::normal_distribution<float>& values) {
    constexpr std::int64_t kPiece = 65536;
    const std::int64_t in = tensor->ne[0];
    const std::int64_t at_once = std::max<std::int64_t>(1, kPiece / in);
    const std::vector<float> importance(in, 1.0F);
    std::vector<float> piece;
    for (std::int64_t row = first; row < first + count; row += at_once) {
      const std::int64_t rows = std::min(at_once, first + count - row);
      piece.resize(rows * in);
      draw(piece, values);
      ggml_quantize_chunk(tensor->type, piece.data(), static_cast<char*>(tensor->data) + row * tensor->nb[1], 0, rows,
                          in, importance.data());
    }
  }

  void draw(std::vector<float>& piece, std::normal_distribution<float>& values) {
    if (repeated_.empty()) {
      for (float& x : piece) x = values(random_);
      return;
    }
    const float deviation = values.stddev();
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t count = std::min(piece.size() - at, repeated_.size() - next_);
      std::transform(&repeated_[next_], &repeated_[next_] + count, &piece[at],
                     [deviation](float x) { return deviation * x; });
      at += count;
      next_ = (next_ + count) % repeated_.size();
    }
  }

  static ggml_tensor* filled(ggml_tensor* tensor, const std::vector<float>& values) {
    const std::vector<float> importance(tensor->ne[0], 1.0F);
    ggml_quantize_chunk(tensor->type, values.data(), tensor->data, 0, ggml_nrows(tensor), tensor->ne[0],
                        importance.data());
    return tensor;
  }

  void add(ggml_tensor* tensor, const std::string& name) {
    ggml_set_name(tensor, name.c_str());
    gguf_add_tensor(gguf_, tensor);
  }

  const TinyModel& m_;
  const TinyArchitecture& arch_;
  std::mt19937 random_;
  std::vector<float> repeated_;  ///< m_.distinct numbers of standard deviation 1
  std::size_t next_ = 0;         ///< index of the next one
  gguf_context* gguf_;
  ggml_context* context_;
};

}  // namespace

void add_tiny_tensors(const TinyModel& model, gguf_context* gguf, ggml_context* context) {
  Tensors(model, gguf, context).add_all();
}

}  // namespace winnow::test
