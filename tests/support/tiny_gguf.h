// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include <cstdint>
#include <string>
#include <vector>

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

/// A small random network of any supported architecture, the same for the same seed.
struct TinyModel {
  std::string arch = "llama";
  int n_layer = 2;
  int n_embd = 64;
  int n_head = 4;
  int n_head_kv = 2;
  int head_dim = 64;
  int n_ff = 128;
  int ctx_train = 256;
  ggml_type type = GGML_TYPE_F32;  ///< of the matrices
  bool tied = true;
  bool rope_factors = false;  ///< a rope_freqs tensor, as Llama 3.1 has
  float linear_scaling = 0;   ///< 0: none
  std::uint32_t seed = 1;
  std::string chat_template;           ///< a text, or the name of one that libllama knows; empty: none
  std::vector<TinyLayer> layers = {};  ///< shapes of each layer, as arrays in the file; empty: those above

  TinyLayer layer(int i) const {
    if (!layers.empty()) return layers[i];
    return {n_head, n_head_kv, head_dim, head_dim, 10000, n_ff};
  }
};

/// One with these heads, and the width that its architecture asks for.
TinyModel tiny_of_heads(const std::string& arch, int heads, int kv_heads, int head_dim);

/// A network whose layers differ in query heads, KV heads, head size, rotated dimensions, RoPE base and width.
TinyModel tiny_of_different_layers();

/// Writes a GGUF with a byte-level SentencePiece vocabulary (259 tokens, made up to a multiple of 32).
void write_tiny_gguf(const TinyModel& model, const std::string& path);

}  // namespace winnow::test
