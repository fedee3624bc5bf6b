// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/rope.h"

namespace winnow::model {

enum class Norm : std::uint8_t {
  rms,   ///< x / sqrt(mean x² + ε), times weights
  mean,  ///< (x - mean) / sqrt(variance + ε), times weights, plus biases if the file has them
};

/// Norms of queries and keys, before the rotation unless stated otherwise.
enum class QkNorm : std::uint8_t {
  none,
  head,          ///< each head; weights [d], shared by all heads
  row,           ///< all heads together, weights [H * d]
  head_by_mean,  ///< each head, by Norm::mean, weights [d, H]
  head_rotated,  ///< like head, but after the rotation; the weights do not commute with it
};

enum class Activation : std::uint8_t {
  silu_gate,     ///< silu(gate) * up
  gelu_gate,     ///< gelu(gate) * up, gelu in its tanh form
  gelu,          ///< gelu(up), without a gate
  clamped_gate,  ///< x * sigmoid(1.702 x) * (y + 1), with x = min(gate, 7) and y = up clamped to [-7, 7]
};

constexpr int kMostExperts = 1024;  ///< per layer, as in llama.cpp

/// Function from the router's logits to the experts' scores.
enum class Gating : std::uint8_t {
  softmax,
  sigmoid,
};

/// Mixture of experts in place of the feed-forward block.
struct Experts {
  enum class Presence : std::uint8_t {
    never,
    where_counted,
    always
  };                                                         ///< where_counted: if the file has the key expert_count
  enum class Width : std::uint8_t { of_feed_forward, own };  ///< own: the key expert_feed_forward_length
  /// A shared expert, which every row uses. counted: its width is that of expert_shared_count ordinary experts.
  /// feed_forward: the usual feed-forward block; it and the experts have their own norms before and after
  /// (post_ffw_norm_1, pre_ffw_norm_2, post_ffw_norm_2).
  enum class Shared : std::uint8_t { none, plain, gated, counted, feed_forward };

  Presence presence = Presence::never;
  Width width = Width::of_feed_forward;
  Gating gating = Gating::softmax;
  bool gating_key = false;     ///< has the key expert_gating_func
  bool normed = true;          ///< the weights of a row's experts are scaled to sum to 1
  bool weight_keys = false;    ///< has the keys expert_weights_norm (default: not normed) and expert_weights_scale
  bool choice_bias = false;    ///< a bias is added to the scores for the choice
  bool biases = false;         ///< biases of router and experts
  bool leading_dense = false;  ///< has the key leading_dense_block_count: the first layers are dense
  bool router_norm = false;    ///< the router's input is hidden / rms / sqrt(n_embd) * ffn_gate_inp.scale
  bool scales = false;         ///< ffn_down_exps.scale multiplies each expert's output
  Shared shared = Shared::none;
  bool fused_shared = false;  ///< ffn_up_shexp has gate and up, in this order
};

/// Differences between an architecture's block and that of `llama`, apart from the file's keys. The defaults are
/// llama's.
struct Architecture {
  enum class FeedForward : std::uint8_t {
    after_attention,   ///< of the sum of attention and residual
    beside_attention,  ///< of attention's own input; both results are added
  };
  enum class Output : std::uint8_t { tied_or_not, tied, untied };  ///< whether the output matrix is the embedding
  enum class LogitScale : std::uint8_t { none, factor, divisor };  ///< meaning of the key logit_scale
  /// of_globals: required, and only for the layers without a window.
  enum class RopeFactors : std::uint8_t { none, one, of_globals, long_and_short, any };
  /// Whether a file has the keys embedding_scale and residual_scale. If optional, 0 means none.
  enum class Scales : std::uint8_t { none, optional, required };

  /// Layers with sliding windows: queries see the last attention.sliding_window tokens.
  struct Windows {
    enum class Rotation : std::uint8_t {
      as_global,    ///< base and scaling of the layers without a window
      scaled,       ///< rope.freq_base_swa (default: the others' base), with the others' scaling
      unscaled,     ///< the others' base, without scaling
      own_base,     ///< rope.freq_base_swa (10000), without scaling
      windows_only  ///< layers without a window do not rotate; the others have the file's base and scaling
    };
    int every = 0;           ///< default period, whose last layer has no window; 0: no windows
    bool listed = false;     ///< the file must say for each layer whether it has one
    bool required = false;   ///< the key attention.sliding_window is required
    int otherwise = 0;       ///< default of attention.sliding_window; 0: no windows
    int only_layers = 0;     ///< only networks with this number of layers have windows; 0: all
    bool own_heads = false;  ///< head sizes from key_length_swa, value_length_swa and rope.dimension_count_swa
    Rotation rotation = Rotation::as_global;

    bool possible() const { return every > 0 || listed; }
  };

  /// A soft cap of logits, c tanh(z / c), with c from a key; 0: none.
  struct Cap {
    bool possible = false;
    float otherwise = 0;  ///< default of c
  };

  std::string_view name;  ///< GGUF's general.architecture
  Rope::Pairing pairing = Rope::Pairing::adjacent;
  Norm norm = Norm::rms;
  // Names of the norms' tensors in a block; empty: none.
  std::string_view attention_norm = "attn_norm";
  std::string_view attention_post_norm = {};
  std::string_view ffn_norm = "ffn_norm";
  std::string_view ffn_post_norm = {};
  QkNorm qk_norm = QkNorm::none;
  int qk_norm_from = 0;           ///< only networks with at least this many layers have qk_norm
  bool qk_norm_optional = false;  ///< only files with its tensors have qk_norm
  FeedForward feed_forward = FeedForward::after_attention;
  Activation activation = Activation::silu_gate;
  bool fused_up = false;  ///< ffn_up has gate and up, in this order
  Experts experts = {};
  bool biases = false;  ///< attn_output, ffn_*: a file may have biases (q, k and v may always)
  bool output_bias = false;
  Output output = Output::tied_or_not;
  RopeFactors rope_factors = RopeFactors::none;
  int unrotated_every = 0;      ///< every n-th layer rotates nothing; 0: none
  bool finetuned_rope = false;  ///< rope.scaling.finetuned = false disables rotation
  bool sqrt_embedding = false;  ///< embeddings are multiplied by sqrt(n_embd)
  bool listed_rope = false;     ///< attention.rope_pattern may say for each layer whether it rotates
  bool yarn_keys = false;       ///< rope.scaling.yarn_log_multiplier, yarn_beta_fast and yarn_beta_slow are used
  bool alpha_base = false;      ///< the base is the file's times rope.scaling.alpha^(d / (d - 2))
  Scales scales = Scales::none;
  bool attention_scale = false;     ///< the key attention.scale is used, unless it is 0
  bool unscaled_attention = false;  ///< q·k is not divided by sqrt(d)
  bool value_norm = false;          ///< each head's values are normalised, without weights
  bool keys_as_values = false;      ///< a layer without attn_v uses its keys before their norm as values
  bool shared_keys = false;         ///< the last attention.shared_kv_layers layers share earlier keys and values
  bool layer_embeddings = false;    ///< the key embedding_length_per_layer_input: layers may have token embeddings of
                                    ///< their own
  bool layer_scales = false;        ///< layer_output_scale may multiply a layer's output
  LogitScale logit_scale = LogitScale::none;
  bool ignored_window = false;  ///< attention.sliding_window is ignored, as in llama.cpp
  Windows windows = {};
  Cap attention_cap = {};      ///< attn_logit_softcapping, of attention logits
  Cap final_cap = {};          ///< final_logit_softcapping, of output logits
  bool sinks = false;          ///< attn_sinks: a learnt sink logit per query head
  bool temperature = false;    ///< attention.temperature_scale may scale queries by their positions
  int width_scale_layers = 0;  ///< networks with this many layers scale q·k by 1 / sqrt(n_embd / heads)
};

/// Throws ModelError that names `path` and lists the supported architectures.
const Architecture& architecture_of(const std::string& name, const std::string& path);

/// Checks that a file is a language model of a supported architecture, by its general.architecture and general.type
/// (empty: missing). Throws ModelError that says what the file is.
void check_kind(const std::string& architecture, const std::string& type, const std::string& path);

/// Names of the supported architectures.
std::string supported_architectures();

}  // namespace winnow::model
