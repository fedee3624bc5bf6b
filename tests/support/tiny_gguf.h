#pragma once

#include <ggml.h>

#include <cstdint>
#include <string>

namespace winnow::test {

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
  std::string chat_template;  ///< a text, or the name of one that libllama knows; empty: none
};

/// Writes a GGUF with a byte-level SentencePiece vocabulary (259 tokens, made up to a multiple of 32).
void write_tiny_gguf(const TinyModel& model, const std::string& path);

}  // namespace winnow::test
