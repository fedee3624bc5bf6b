// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/as_size.h"
#include "model/architecture.h"
#include "model/layer_spec.h"
#include "model/rope_scaling.h"
#include "winnow/model_options.h"

struct gguf_context;

namespace winnow::model {

/// How the chosen experts are weighted.
struct Routing {
  Gating gating = Gating::softmax;
  bool normed = true;
  float scale = 1;  ///< factor of the weights
};

/// Hyper-parameters of a network from its GGUF, checked, with all defaults filled in. Networks differ only in these
/// fields and in their Architecture. Layers of the same shapes share one LayerSpec.
struct Hparams {
  const Architecture* architecture = nullptr;
  std::string name;
  int n_block = 0;  ///< blocks in the file; those from n_layer on predict further tokens and are unused
  int n_layer = 0;
  int n_kv_layer = 0;  ///< number of layers with keys and values, which come first; the others share those of
                       ///< kv_layer()
  int n_embd = 0;
  int n_embd_layer = 0;  ///< width of the per-layer token embeddings; 0: none
  int n_vocab = 0;
  int ctx_train = 0;
  int context = 0;  ///< usable context in tokens: ctx_train, or more if RoPE is scaled
  float norm_eps = 0;
  float embedding_scale = 1;
  float residual_scale = 1;  ///< factor of the outputs of attention and feed-forward
  float logit_scale = 1;
  float final_cap = 0;  ///< soft cap of the scaled logits; 0: none
  Routing routing;
  RopeScaling rope_scaling;
  std::vector<LayerSpec> kinds;  ///< distinct layer specs, by first occurrence
  std::vector<int> kind_of;      ///< [n_layer]
  int n_global = 0;              ///< layers without a window that have keys and values
  /// [n_layer][H_q] logits of learnt attention sinks, read from tensors; empty: none.
  std::vector<std::vector<float>> sink_logits;
  std::vector<int> place_of;  ///< [n_layer] index among the layers with a window, or among those without

  const LayerSpec& layer(int l) const { return kinds[as_size(kind_of[l])]; }
  /// The layer whose keys and values a layer reads: its own if it has any, else those of the last such layer, or of the
  /// last but one for layers with a window.
  int kv_layer(int l) const {
    if (l < n_kv_layer) return l;
    return n_kv_layer - (layer(l).window > 0 ? 2 : 1);
  }
  /// The last layer that reads the keys and values of layer `l`.
  int last_reader(int l) const;
  /// Layers with a window that have keys and values.
  int n_windowed() const { return n_kv_layer - n_global; }
  /// Appends a layer. REQUIRES: n_kv_layer is set.
  void add(const LayerSpec& layer);
  /// True if a stored key can be moved to another position. False if a weighted norm follows the rotation.
  bool keys_turn() const { return qk_norm() != QkNorm::head_rotated; }
  QkNorm qk_norm() const { return n_layer < architecture->qk_norm_from ? QkNorm::none : architecture->qk_norm; }
};

/// Reads and checks the keys of a GGUF. Frequencies do not include factors stored as tensors. Throws ModelError that
/// names `path` and the fault: an unsupported architecture, with a list of the supported ones, or an unknown key of the
/// architecture, which might change what the network computes.
Hparams read_hparams(const gguf_context* gguf, const std::string& path, const ModelOptions& options);

}  // namespace winnow::model
