// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/expert_matrices.h"
#include "model/hparams.h"

struct ggml_tensor;

namespace winnow::model {

class TensorLoader;

/// Of a norm or a matrix; null where the file has none.
struct Affine {
  ggml_tensor* weight = nullptr;
  ggml_tensor* bias = nullptr;
};

/// What chooses and holds the experts of a layer; null where it has none.
struct ExpertWeights {
  Affine norm;                          ///< of what they read; none: the norm of the feed-forward part
  Affine post_norm;                     ///< of what they give
  Affine shared_post_norm;              ///< of what the shared expert gives
  Affine router;                        ///< [n_embd, n_expert]
  ggml_tensor* router_scale = nullptr;  ///< [n_embd]: the router reads rows that are normalised by it alone
  ggml_tensor* choice_bias = nullptr;   ///< [n_expert], on what experts are chosen by; their weights do not have it
  ExpertMatrices gate;                  ///< [n_embd, n_ff_expert]; null: `up` holds gate and up, in this order
  ExpertMatrices up;
  ExpertMatrices down;                 ///< [n_ff_expert, n_embd]
  ggml_tensor* scales = nullptr;       ///< [n_expert] on what each gives
  ggml_tensor* shared_gate = nullptr;  ///< [n_embd], of how much the shared expert adds; null: all
};

/// A layer's own embedding of tokens, which is added to what the layer gives; null where the network has none.
struct LayerEmbedding {
  ggml_tensor* of_embedding = nullptr;  ///< [n_embd, n_embd_layer], of the network's embedding of the token
  ggml_tensor* norm = nullptr;          ///< [n_embd_layer], of what that gives; the same for all layers
  ggml_tensor* gate = nullptr;          ///< [n_embd, n_embd_layer], of the hidden states
  ggml_tensor* out = nullptr;           ///< [n_embd_layer, n_embd]
  Affine post_norm;
};

/// Tensors of one layer; null where the network has none. ggml's shapes: ne[0] is the input dimension. What a file
/// fuses (queries, keys and values; gate and up) are matrices of their own here.
struct LayerWeights {
  Affine attention_norm;  ///< none: attention reads the hidden states as they are
  Affine q;
  Affine k;  ///< none, nor v: the layer reads another one's keys and values
  Affine v;  ///< none: the keys, as they are before their norm, are the values
  Affine o;
  ggml_tensor* q_norm = nullptr;
  ggml_tensor* k_norm = nullptr;
  Affine attention_post_norm;  ///< of what attention adds
  Affine ffn_norm;
  ExpertWeights experts;
  Affine gate;  ///< this one and the next two: of the shared expert where there are experts
  Affine up;
  Affine down;
  Affine ffn_post_norm;
  LayerEmbedding embedding;
  ggml_tensor* scale = nullptr;  ///< [1] on what the layer gives

  /// Those that are there.
  std::vector<const ggml_tensor*> all() const;
  /// Those that all rows are multiplied by, in the order in which they are needed; the router is not among them.
  std::vector<const ggml_tensor*> matrices() const;
};

/// Throws ModelError: a tensor is missing, or has another shape or type than its network asks for.
LayerWeights load_layer(TensorLoader& loader, const Hparams& hparams, int layer, const LayerEmbedding& embedding = {});

/// What all layers' embeddings share, [layer]: products of the network's embedding, and their norm. Empty: there are
/// none.
std::vector<LayerEmbedding> load_layer_embeddings(TensorLoader& loader, const Hparams& hparams);

/// A norm's tensors, NAME.weight and, where the network's norms have biases, NAME.bias.
Affine load_norm(TensorLoader& loader, const Hparams& hparams, const std::string& name);

}  // namespace winnow::model
