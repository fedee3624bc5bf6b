// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/rope.h"

namespace winnow::model {

enum class Norm : std::uint8_t {
  rms,   ///< x / sqrt(mean x² + ε), times weights
  mean,  ///< (x - mean) / sqrt(variance + ε), times weights, plus biases where a file has them
};

/// What is normalised of queries and keys, before they are rotated where it does not say otherwise.
enum class QkNorm : std::uint8_t {
  none,
  head,          ///< each head, weights [d] for all heads
  row,           ///< all heads together, weights [H * d]
  head_by_mean,  ///< each head by Norm::mean, weights [d, H]
  head_rotated,  ///< as head, but after the rotation, with which the weights do not commute
};

enum class Activation : std::uint8_t {
  silu_gate,     ///< silu(gate) * up
  gelu_gate,     ///< gelu(gate) * up, gelu by its tanh form
  gelu,          ///< gelu(up): there is no gate
  clamped_gate,  ///< x * sigmoid(1.702 x) * (y + 1) of x = min(gate, 7), y = up from -7 to 7
};

constexpr int kMostExperts = 1024;  ///< of a layer, as in llama.cpp

/// What the router's logits say of each expert.
enum class Gating : std::uint8_t {
  softmax,
  sigmoid,
};

/// What an architecture has in place of the feed-forward part: a router chooses a few of many, for each row.
struct Experts {
  enum class Presence : std::uint8_t { never, where_counted, always };  ///< where_counted: with the key expert_count
  enum class Width : std::uint8_t { of_feed_forward, own };             ///< own: the key expert_feed_forward_length
  /// An expert that every row has besides; counted: as wide as expert_shared_count of the others. feed_forward: the
  /// usual feed-forward part; it and the experts have norms of their own before and after (post_ffw_norm_1,
  /// pre_ffw_norm_2, post_ffw_norm_2).
  enum class Shared : std::uint8_t { none, plain, gated, counted, feed_forward };

  Presence presence = Presence::never;
  Width width = Width::of_feed_forward;
  Gating gating = Gating::softmax;
  bool gating_key = false;   ///< the key expert_gating_func
  bool normed = true;        ///< the weights of a row's experts are made to add up to 1
  bool weight_keys = false;  ///< the keys expert_weights_norm (without it they are not normed) and expert_weights_scale
  bool choice_bias = false;  ///< on what experts are chosen by
  bool biases = false;       ///< of the router and of experts
  bool leading_dense = false;  ///< the key leading_dense_block_count: so many layers have none
  bool router_norm = false;    ///< the router reads rows over their rms and sqrt(n_embd), times ffn_gate_inp.scale
  bool scales = false;         ///< ffn_down_exps.scale multiplies what each gives
  Shared shared = Shared::none;
  bool fused_shared = false;  ///< ffn_up_shexp holds gate and up, in this order
};

/// How an architecture's block differs from that of `llama`, as far as a file's keys do not say. What a row leaves out
/// is llama's.
struct Architecture {
  enum class FeedForward : std::uint8_t {
    after_attention,   ///< of the sum of attention and residual
    beside_attention,  ///< of attention's own input: both results are added
  };
  enum class Output : std::uint8_t { tied_or_not, tied, untied };  ///< the output matrix to the embedding
  enum class LogitScale : std::uint8_t { none, factor, divisor };  ///< what the key logit_scale is
  /// of_globals: one, which must be there, for the layers without a window alone.
  enum class RopeFactors : std::uint8_t { none, one, of_globals, long_and_short, any };
  /// Whether a file has the keys embedding_scale and residual_scale; where it need not, 0 says no more than none.
  enum class Scales : std::uint8_t { none, optional, required };

  /// Layers whose queries see the last tokens only, attention.sliding_window of them.
  struct Windows {
    enum class Rotation : std::uint8_t {
      as_global,    ///< base and scaling are those of layers without a window
      scaled,       ///< rope.freq_base_swa (that of the others), with their scaling
      unscaled,     ///< the same base, without scaling
      own_base,     ///< rope.freq_base_swa (10000), without scaling
      windows_only  ///< those of layers without a window, which rotate nothing
    };
    int every = 0;  ///< of so many layers all but the last have one, unless the file says which; 0: there are none
    bool listed = false;     ///< the file must say of each layer whether it has one
    bool required = false;   ///< the key must be there
    int otherwise = 0;       ///< W where it is not; 0: there are none
    int only_layers = 0;     ///< only networks of so many layers have them; 0: all
    bool own_heads = false;  ///< key_length_swa, value_length_swa and rope.dimension_count_swa say what their heads are
    Rotation rotation = Rotation::as_global;

    bool possible() const { return every > 0 || listed; }
  };

  /// A soft cap of logits, c tanh(z / c), where c is a key; of 0 there is none.
  struct Cap {
    bool possible = false;
    float otherwise = 0;  ///< c where the key is not there
  };

  std::string_view name;  ///< GGUF's general.architecture
  Rope::Pairing pairing = Rope::Pairing::adjacent;
  Norm norm = Norm::rms;
  // The tensors of norms in a block; empty: there is none.
  std::string_view attention_norm = "attn_norm";
  std::string_view attention_post_norm = {};
  std::string_view ffn_norm = "ffn_norm";
  std::string_view ffn_post_norm = {};
  QkNorm qk_norm = QkNorm::none;
  int qk_norm_from = 0;           ///< only networks of at least so many layers have it
  bool qk_norm_optional = false;  ///< only files with its tensors have it
  FeedForward feed_forward = FeedForward::after_attention;
  Activation activation = Activation::silu_gate;
  bool fused_up = false;  ///< ffn_up holds gate and up, in this order
  Experts experts = {};
  bool biases = false;  ///< attn_output, ffn_*: a file may have them (q, k and v may have them everywhere)
  bool output_bias = false;
  Output output = Output::tied_or_not;
  RopeFactors rope_factors = RopeFactors::none;
  int unrotated_every = 0;      ///< every so manieth layer rotates nothing; 0: none
  bool finetuned_rope = false;  ///< rope.scaling.finetuned = false means that nothing is rotated
  bool sqrt_embedding = false;  ///< embeddings times sqrt(n_embd)
  bool listed_rope = false;     ///< attention.rope_pattern may say of each layer whether it rotates
  bool yarn_keys = false;       ///< rope.scaling.yarn_log_multiplier, yarn_beta_fast and yarn_beta_slow have a meaning
  bool alpha_base = false;      ///< the base is that of the file times rope.scaling.alpha^(d / (d - 2))
  Scales scales = Scales::none;
  bool attention_scale = false;     ///< the key attention.scale, where it is not 0
  bool unscaled_attention = false;  ///< q·k is not divided by sqrt(d)
  bool value_norm = false;          ///< each head's values are normalised, without weights
  bool keys_as_values = false;      ///< a layer without attn_v has its keys, as they are before their norm, as values
  bool shared_keys = false;         ///< attention.shared_kv_layers: so many last layers read the keys of others
  bool layer_embeddings = false;    ///< the key embedding_length_per_layer_input: layers may embed tokens, too
  bool layer_scales = false;        ///< layer_output_scale may multiply what a layer gives
  LogitScale logit_scale = LogitScale::none;
  bool ignored_window = false;  ///< attention.sliding_window has no meaning, as in llama.cpp
  Windows windows = {};
  Cap attention_cap = {};      ///< attn_logit_softcapping, of attention's logits
  Cap final_cap = {};          ///< final_logit_softcapping, of the network's
  bool sinks = false;          ///< attn_sinks: of each query head a logit beside those of the keys
  bool temperature = false;    ///< attention.temperature_scale may say that queries grow with their positions
  int width_scale_layers = 0;  ///< networks of so many layers scale q·k by 1 / sqrt(n_embd / heads)
};

/// Throws ModelError that names `path` and lists those that are supported.
const Architecture& architecture_of(const std::string& name, const std::string& path);

/// That a file is a language model of a supported architecture, by its general.architecture and general.type, each
/// empty where there is none. Throws ModelError that says what the file is.
void check_kind(const std::string& architecture, const std::string& type, const std::string& path);

/// Names of the supported architectures.
std::string supported_architectures();

}  // namespace winnow::model
