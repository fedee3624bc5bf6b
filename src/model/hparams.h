#pragma once

#include <cstdint>
#include <string>

#include "base/rope.h"

namespace winnow::model {

enum class Activation : std::uint8_t { silu, gelu };

/// What a GGUF says about its network, checked, with every default filled in. Architectures differ in these fields alone.
struct Hparams {
  std::string arch;  ///< GGUF's general.architecture
  std::string name;
  int n_layer = 0;
  int n_embd = 0;
  int n_ff = 0;
  int n_head = 0;
  int n_head_kv = 0;
  int head_dim = 0;
  int n_vocab = 0;
  int ctx_train = 0;
  float rms_eps = 0;
  float embedding_scale = 1;  ///< gemma: sqrt(n_embd)
  float attention_scale = 0;  ///< on q·k
  Activation activation = Activation::silu;
  bool qkv_bias = false;  ///< biases are there: qwen2
  bool qk_norm = false;   ///< RMS norm of every head's q and k before RoPE: qwen3
  Rope rope;
};

}  // namespace winnow::model
