// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/hparams.h"
#include "model/model_file.h"

struct ggml_tensor;

namespace winnow::model {

/// Tensors of one layer; null where the architecture has none. ggml's shapes: ne[0] is the input dimension.
struct LayerWeights {
  ggml_tensor* attn_norm = nullptr;
  ggml_tensor* wq = nullptr;
  ggml_tensor* wk = nullptr;
  ggml_tensor* wv = nullptr;
  ggml_tensor* wo = nullptr;
  ggml_tensor* bq = nullptr;
  ggml_tensor* bk = nullptr;
  ggml_tensor* bv = nullptr;
  ggml_tensor* bo = nullptr;
  ggml_tensor* q_norm = nullptr;
  ggml_tensor* k_norm = nullptr;
  ggml_tensor* ffn_norm = nullptr;
  ggml_tensor* ffn_gate = nullptr;
  ggml_tensor* ffn_up = nullptr;
  ggml_tensor* ffn_down = nullptr;

  /// Those that are there.
  std::vector<const ggml_tensor*> all() const;
};

/// A GGUF's network in memory, in the layout that the CPU backend multiplies fastest (mapped or repacked). Immutable,
/// shared by threads.
class Weights {
 public:
  /// Throws ModelError (which file, which tensor, which shape, what was expected) or MemoryError.
  static std::shared_ptr<const Weights> load(const ModelFile& file, const ModelOptions& options = {});
  /// The same, of a file that nobody else reads.
  static std::shared_ptr<const Weights> load(const std::string& path, const ModelOptions& options = {});
  ~Weights();

  const Hparams& hparams() const;
  const LayerWeights& layer(int l) const;
  ggml_tensor* token_embedding() const;
  ggml_tensor* output_norm() const;
  ggml_tensor* output() const;        ///< [n_embd, n_vocab], a repacked copy of the embedding where they are tied
  ggml_tensor* rope_factors() const;  ///< null unless the file has rope_freqs
  std::string weight_type() const;    ///< most frequent type of the matrices, `q4_1`
  std::size_t bytes() const;          ///< memory that the weights take
  /// The rows of a tensor as the file has them, whatever the backend has made of it.
  const std::byte* in_file(const ggml_tensor* tensor) const;
  const std::string& path() const;
  /// All bytes of the file.
  std::span<const std::byte> file() const;

  struct Impl;

 private:
  Weights();
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::model
