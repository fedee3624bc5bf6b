// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Contents of a GGUF file of each architecture, as llama.cpp's loader expects them: the names of tensors, which of
/// them exist, and the keys that other architectures lack. How a network computes with them is left to the two programs
/// that the tests compare.
namespace winnow::test {

enum class NormKind : std::uint8_t {
  rms,
  layer,  ///< subtracts the mean
  layer_with_bias,
};

/// Norms of queries and keys, `attn_q_norm` and `attn_k_norm`.
enum class QkNorm : std::uint8_t {
  none,
  of_heads,      ///< one weight [d] for all heads
  of_rows,       ///< weights of all heads together, [H d] and [K d]
  of_each_head,  ///< a weight for every head, [d, H] and [d, K]
};

enum class FfnKind : std::uint8_t {
  gated,  ///< ffn_gate, ffn_up, ffn_down
  fused,  ///< ffn_up holds the gate before itself
  plain,  ///< no gate
};

/// An expert that every token passes through, besides those that the router chooses.
enum class SharedExpert : std::uint8_t {
  none,
  plain,
  gated,         ///< ffn_gate_inp_shexp weights its output
  counted,       ///< as wide as two of the others (key expert_shared_count)
  feed_forward,  ///< the usual feed-forward part; it and the experts have separate norms
};

enum class OutputMatrix : std::uint8_t {
  tied,      ///< token_embd always
  optional,  ///< token_embd where output.weight is missing
  untied,    ///< output.weight is required
};

/// Products that have a bias.
struct Biases {
  bool qkv = false;
  bool attn_output = false;
  bool ffn = false;
  bool output = false;

  bool operator==(const Biases&) const = default;
};

/// A key without the architecture's prefix, such as ".logit_scale".
struct TinyKey {
  std::string name;
  std::variant<bool, std::uint32_t, float, std::string, std::vector<bool>> value;
};

/// One architecture, by its differences from llama.
struct TinyArchitecture {
  std::string_view name;
  NormKind norm = NormKind::rms;
  /// Norms of the inputs (pre) and outputs (post) of attention and of the feed-forward part. Empty: there is none.
  std::string_view pre_attention = "attn_norm";
  std::string_view post_attention = "";
  std::string_view pre_ffn = "ffn_norm";
  std::string_view post_ffn = "";
  QkNorm qk_norm = QkNorm::none;
  int qk_norm_from_layers = 0;    ///< only models with at least this many layers have them
  bool qk_norm_optional = false;  ///< not all files have them
  bool fused_qkv = false;         ///< files have attn_qkv, although separate tensors load too
  FfnKind ffn = FfnKind::gated;
  int experts = 0;              ///< in place of the feed-forward part, unless a model says how many
  bool expert_width = false;    ///< the key expert_feed_forward_length is read
  bool expert_biases = false;   ///< of the router and of experts
  bool choice_bias = false;     ///< exp_probs_b
  bool scaled_experts = false;  ///< ffn_gate_inp.scale and ffn_down_exps.scale
  int leading_dense = 0;        ///< layers without experts, by the key leading_dense_block_count
  SharedExpert shared = SharedExpert::none;
  bool fused_shared = false;               ///< its ffn_up_shexp holds the gate before itself
  Biases biases = {};                      ///< biases in every file
  Biases optional_biases = {.qkv = true};  ///< biases that are used if a file has them
  OutputMatrix output = OutputMatrix::optional;
  bool heads_fill_width = false;  ///< the heads' dimensions must add up to n_embd
  bool own_kv_heads = false;      ///< every query head must have its own KV head
  bool sinks = false;             ///< attn_sinks, of each query head
  /// In layers with windows, heads have half as many dimensions (given by separate keys) and share no KV heads.
  bool own_window_heads = false;
  bool rope_of_globals = false;           ///< rope_freqs for layers without windows: a quarter of the pairs turn
  bool keys_as_values = false;            ///< layers without windows use keys as values if attn_v is missing
  bool layer_embeddings = false;          ///< the key embedding_length_per_layer_input
  bool layer_scales = false;              ///< layer_output_scale
  bool unscaled_attention = false;        ///< the heads are normalized instead
  bool half_rotated = false;              ///< RoPE rotates half of a head; llama's rotates all of it
  int layers = 2;                         ///< the fewest that use all features
  double warmest = 1;                     ///< largest factor on queries in the tests' texts
  bool gelu = false;                      ///< the activation, which ggml reads from a table
  std::vector<TinyKey> keys = {};         ///< flags of layers are repeated for all layers
  std::vector<TinyKey> unused_keys = {};  ///< required by libllama, without effect
};

/// Every architecture of tiny files.
const std::vector<TinyArchitecture>& tiny_architectures();

/// The architecture of this name; llama's for an unknown name, so that files of unknown architectures can be written.
const TinyArchitecture& tiny_architecture(std::string_view name);

}  // namespace winnow::test
