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

/// How a router weighs the experts that it has chosen.
struct Routing {
  Gating gating = Gating::softmax;
  bool normed = true;
  float scale = 1;  ///< on the weights
};

/// What a GGUF says about its network, checked, with every default filled in. Networks differ in these fields and in
/// their architecture's row alone. Layers of the same shapes share one LayerSpec.
struct Hparams {
  const Architecture* architecture = nullptr;
  std::string name;
  int n_block = 0;  ///< of the file; those from n_layer on predict further tokens and are not used
  int n_layer = 0;
  int n_kv_layer = 0;  ///< the first layers, which have keys and values; the others read those of kv_layer()
  int n_embd = 0;
  int n_embd_layer = 0;  ///< of each layer's own embedding of tokens; 0: they have none
  int n_vocab = 0;
  int ctx_train = 0;
  int context = 0;  ///< tokens that it reads: ctx_train, or more with a scaling of RoPE
  float norm_eps = 0;
  float embedding_scale = 1;
  float residual_scale = 1;  ///< on what attention and feed-forward add
  float logit_scale = 1;
  float final_cap = 0;  ///< soft cap of the scaled logits; 0: there is none
  Routing routing;
  RopeScaling rope_scaling;
  std::vector<LayerSpec> kinds;  ///< of layers, in the order of their first ones; no two are equal
  std::vector<int> kind_of;      ///< [n_layer]
  int n_global = 0;              ///< layers without a window that have keys and values
  /// [n_layer][H_q] logits of learnt attention sinks, which are tensors; empty: there are none.
  std::vector<std::vector<float>> sink_logits;
  std::vector<int> place_of;  ///< [n_layer] which of the layers with a window, or of those without one, it is

  const LayerSpec& layer(int l) const { return kinds[as_size(kind_of[l])]; }
  /// Whose keys and values a layer reads: of those that have some its own, else those of the last one, or with a window
  /// those of the last but one.
  int kv_layer(int l) const {
    if (l < n_kv_layer) return l;
    return n_kv_layer - (layer(l).window > 0 ? 2 : 1);
  }
  /// The last layer that reads a layer's keys and values.
  int last_reader(int l) const;
  /// Layers with a window that have keys and values.
  int n_windowed() const { return n_kv_layer - n_global; }
  /// Adds the last layer so far. REQUIRES: n_kv_layer.
  void add(const LayerSpec& layer);
  /// Whether a stored key can be turned to another position: not where it has been normed, with weights, after it was
  /// rotated.
  bool keys_turn() const { return qk_norm() != QkNorm::head_rotated; }
  QkNorm qk_norm() const { return n_layer < architecture->qk_norm_from ? QkNorm::none : architecture->qk_norm; }
};

/// Reads and checks the keys of a GGUF; frequencies are filled in without factors that are tensors. Throws ModelError
/// that names `path` and what is wrong: an architecture that is not supported, with the list of those that are, and
/// any key of the architecture that winnow does not know, since the network may compute something else.
Hparams read_hparams(const gguf_context* gguf, const std::string& path, const ModelOptions& options);

}  // namespace winnow::model
