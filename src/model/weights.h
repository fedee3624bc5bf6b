// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "model/hparams.h"
#include "model/layer_weights.h"
#include "model/model_file.h"

struct ggml_tensor;

namespace winnow::model {

/// What a network is, without its weights.
struct Outline {
  Hparams hparams;
  std::string weight_type;  ///< most frequent type of the matrices, `q4_1`
  std::size_t bytes = 0;    ///< memory that the weights would take
};

/// Checks all that Weights::load() checks, and reads no weights. Throws ModelError as it does.
Outline outline(const ModelFile& file, const ModelOptions& options = {});

/// A GGUF's network in memory, in the layout that the CPU backend multiplies fastest (mapped or repacked). Immutable,
/// shared by threads.
class Weights {
 public:
  /// Throws ModelError (which file, which tensor, which shape, what was expected; also a tensor of the file that its
  /// architecture does not use) or MemoryError.
  static std::shared_ptr<const Weights> load(const ModelFile& file, const ModelOptions& options = {});
  /// The same, of a file that nobody else reads.
  static std::shared_ptr<const Weights> load(const std::string& path, const ModelOptions& options = {});
  ~Weights();

  const Hparams& hparams() const;
  const LayerWeights& layer(int l) const;
  ggml_tensor* token_embedding() const;
  /// Of all layers, [n_layer * n_embd_layer, n_vocab], times sqrt(n_embd_layer); null: they have none.
  ggml_tensor* layer_embedding() const;
  const Affine& output_norm() const;
  const Affine& output() const;  ///< [n_embd, n_vocab], a repacked copy of the embedding where they are tied
  ggml_tensor* rope_divisors(int layer) const;  ///< of the layer's unscaled frequencies, [pairs]; null: all are 1
  std::string weight_type() const;              ///< as in an Outline, as the next one
  std::size_t bytes() const;
  /// The rows of a tensor as the file has them, whatever the backend has made of it.
  const std::byte* in_file(const ggml_tensor* tensor) const;
  /// Which row of the file's tensor a tensor begins with: that of a part of a fused one is not 0.
  std::int64_t first_row(const ggml_tensor* tensor) const;
  const std::string& path() const;
  /// Of all bytes of the file, or of its parts.
  std::uint64_t hash_of_file() const;

  struct Impl;

 private:
  Weights();
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::model
