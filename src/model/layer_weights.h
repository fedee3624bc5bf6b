// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/expert_matrices.h"
#include "model/hparams.h"

struct ggml_tensor;

namespace winnow::model {

class TensorLoader;

/// Weight and bias of a norm or a matrix; null if missing.
struct Affine {
  ggml_tensor* weight = nullptr;
  ggml_tensor* bias = nullptr;
};

/// Router and experts of a layer; null if it has none.
struct ExpertWeights {
  Affine norm;                          ///< of their input; none: the norm of the feed-forward block
  Affine post_norm;                     ///< of their output
  Affine shared_post_norm;              ///< of the shared expert's output
  Affine router;                        ///< [n_embd, n_expert]
  ggml_tensor* router_scale = nullptr;  ///< [n_embd] the router's input is normalised and multiplied by it; null: no
                                        ///< such step
  ggml_tensor* choice_bias = nullptr;   ///< [n_expert] added to the scores for the choice, but not for the weights
  ExpertMatrices gate;                  ///< [n_embd, n_ff_expert]; null: `up` has gate and up, in this order
  ExpertMatrices up;
  ExpertMatrices down;                 ///< [n_ff_expert, n_embd]
  ggml_tensor* scales = nullptr;       ///< [n_expert] factors of the outputs
  ggml_tensor* shared_gate = nullptr;  ///< [n_embd] gate of the shared expert; null: none
};

/// A layer's own token embedding, added to its output; null if the network has none.
struct LayerEmbedding {
  ggml_tensor* of_embedding = nullptr;  ///< [n_embd, n_embd_layer], applied to the network's token embedding
  ggml_tensor* norm = nullptr;          ///< [n_embd_layer], applied to its result; the same for all layers
  ggml_tensor* gate = nullptr;          ///< [n_embd, n_embd_layer], applied to the hidden states
  ggml_tensor* out = nullptr;           ///< [n_embd_layer, n_embd]
  Affine post_norm;
};

/// Tensors of one layer; null if the network has none. ggml's shapes: ne[0] is the input dimension. Fused tensors of a
/// file (queries, keys and values; gate and up) are split.
struct LayerWeights {
  Affine attention_norm;  ///< none: attention reads the hidden states unnormalised
  Affine q;
  Affine k;  ///< no k and v: a KV-sharing layer
  Affine v;  ///< no v: the keys before their norm are the values
  Affine o;
  ggml_tensor* q_norm = nullptr;
  ggml_tensor* k_norm = nullptr;
  Affine attention_post_norm;  ///< of attention's output
  Affine ffn_norm;
  ExpertWeights experts;
  Affine gate;  ///< with experts: this and the next two are the shared expert's
  Affine up;
  Affine down;
  Affine ffn_post_norm;
  LayerEmbedding embedding;
  ggml_tensor* scale = nullptr;  ///< [1] factor of the layer's output

  /// All tensors of the layer.
  std::vector<const ggml_tensor*> all() const;
  /// Matrices that all rows are multiplied by, in order of use, without the router.
  std::vector<const ggml_tensor*> matrices() const;
};

/// Throws ModelError if a tensor is missing or has an unexpected shape or type.
LayerWeights load_layer(TensorLoader& loader, const Hparams& hparams, int layer, const LayerEmbedding& embedding = {});

/// Tensors shared by all layers' embeddings, [layer]: the projection of the network's embedding, and its norm. Empty:
/// none.
std::vector<LayerEmbedding> load_layer_embeddings(TensorLoader& loader, const Hparams& hparams);

/// Tensors of a norm: NAME.weight and, if the network's norms have biases, NAME.bias.
Affine load_norm(TensorLoader& loader, const Hparams& hparams, const std::string& name);

}  // namespace winnow::model
