// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/tiny_architectures.h"

namespace winnow::test {

/// One layer of a network whose layers differ.
struct TinyLayer {
  int n_head = 4;
  int n_head_kv = 2;
  int head_dim = 64;
  int n_rot = 64;  ///< dimensions that RoPE rotates
  float rope_freq_base = 10000;
  int n_ff = 128;
};

/// The keys `rope.scaling.…`; those that are empty or 0 are not written.
struct TinyScaling {
  std::string type = {};
  float factor = 0;
  int original_context = 0;
  float attn_factor = 0;
};

enum class QkvTensors : std::uint8_t {
  as_usual,  ///< as in real files of the architecture
  separate,  ///< attn_q, attn_k, attn_v
  fused,     ///< attn_qkv, with the same weights
};

/// A small random network of any supported architecture; the same seed gives the same network.
struct TinyModel {
  std::string arch = "llama";
  std::string name = "tiny";
  int n_layer = 2;
  int n_embd = 64;
  int n_head = 4;
  int n_head_kv = 2;
  int head_dim = 64;
  int n_rot = 0;  ///< dimensions of a head that RoPE rotates; 0: as in real models of the architecture
  int n_ff = 128;
  int n_vocab = 288;  ///< at least 259: <unk> <s> </s> and 256 bytes; the others are words
  int n_expert = 0;   ///< 0: as in real models of the architecture
  int n_expert_used = 2;
  int n_ff_expert = 96;          ///< if the architecture has a key for it, else n_ff
  int n_ff_shared = 160;         ///< if the architecture has a shared expert; 0: the model has none
  float router_scale = 4;        ///< of its weights, so that its logits lie far apart
  bool gate_up_experts = false;  ///< both in one tensor, with the same weights
  int ctx_train = 256;
  ggml_type type = GGML_TYPE_F32;  ///< of the matrices
  bool tied = true;                ///< if the architecture allows it
  QkvTensors qkv = QkvTensors::as_usual;
  bool optional_norms = true;    ///< of queries and keys, if not all files have them
  bool optional_biases = false;  ///< all that the architecture may have
  bool rope_factors = false;     ///< a rope_freqs tensor, as Llama 3.1 has
  int shared_kv = 0;             ///< number of last layers that read keys and values of earlier ones
  int layer_embedding = 0;       ///< length of layers' own embeddings of tokens; 0: they have none
  bool all_values = false;       ///< write attn_v even in layers that can do without it
  bool longrope = false;         ///< rope_factors_long and rope_factors_short, as Phi-3 has
  TinyScaling scaling = {};
  std::vector<TinyKey> keys = {};  ///< added to the architecture's keys, or replacing their values
  std::uint32_t seed = 1;
  int distinct = 0;  ///< numbers drawn for the weights of all matrices, which repeat them; 0: one for each weight
  std::string tokenizer = {};          ///< GGUF file with n_vocab tokens, whose tokenizer and templates are taken
  std::string chat_template;           ///< a text, or the name of one that libllama knows; empty: none
  std::string tool_use_template = {};  ///< for requests with tools; empty: none
  std::vector<TinyLayer> layers = {};  ///< shapes of each layer, as arrays in the file; empty: those above

  /// Dimensions of a head that RoPE rotates, unless layers differ.
  int rotated() const;
  int experts() const;
  int expert_width() const;
  int shared_width() const;  ///< 0: the model has no shared expert
  /// Whether a layer has experts.
  bool has_experts(int layer) const;
  /// Whether a layer has a matrix of keys, and one of values.
  bool has_keys(int layer) const;
  bool has_values(int layer) const;
  /// Whether a layer has a window, by the model's or the architecture's flags of layers.
  bool has_window(int layer) const;
  TinyLayer layer(int i) const;
};

/// A model that libllama loads and that uses all features of the architecture.
TinyModel tiny_of(const std::string& arch);

/// A model with these heads, and with the width that its architecture requires.
TinyModel tiny_of_heads(const std::string& arch, int heads, int kv_heads, int head_dim);

/// A model whose layers differ in query heads, KV heads, head size, rotated dimensions, RoPE base and width.
TinyModel tiny_of_different_layers();

/// A gemma3 model with these layers; true: the layer has a window.
TinyModel tiny_with_windows(std::uint32_t window, const std::vector<bool>& layers);

/// Writes a GGUF with a byte-level SentencePiece vocabulary (259 tokens, and words up to n_vocab), or with the
/// tokenizer of another file.
void write_tiny_gguf(const TinyModel& model, const std::string& path);

}  // namespace winnow::test
