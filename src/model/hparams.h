// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "model/layer_spec.h"
#include "winnow/model_options.h"

struct gguf_context;

namespace winnow::model {

enum class Activation : std::uint8_t { silu, gelu };

/// What a GGUF says about its network, checked, with every default filled in. Architectures differ in these fields
/// alone. Layers of the same shapes share one LayerSpec.
struct Hparams {
  std::string arch;  ///< GGUF's general.architecture
  std::string name;
  int n_layer = 0;
  int n_embd = 0;
  int n_vocab = 0;
  int ctx_train = 0;
  float rms_eps = 0;
  float embedding_scale = 1;  ///< gemma: sqrt(n_embd)
  Activation activation = Activation::silu;
  bool qk_norm = false;          ///< RMS norm of every head's q and k before RoPE: qwen3
  std::vector<LayerSpec> kinds;  ///< of layers, in the order of their first ones; no two are equal
  std::vector<int> kind_of;      ///< [n_layer]

  const LayerSpec& layer(int l) const { return kinds[as_size(kind_of[l])]; }
  /// Adds the last layer so far.
  void add(const LayerSpec& layer);
};

/// Reads and checks the keys of a GGUF; frequencies are filled in without rope_freqs' factors. Throws ModelError that
/// names `path` and what is wrong, an architecture that is not supported with the list of those that are, and scalings
/// that are not honoured by name.
Hparams read_hparams(const gguf_context* gguf, const std::string& path, const ModelOptions& options);

/// Names of the supported architectures.
std::string supported_architectures();

}  // namespace winnow::model
