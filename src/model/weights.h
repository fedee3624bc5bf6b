// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/device.h"
#include "model/hparams.h"
#include "model/layer_weights.h"
#include "model/model_file.h"

struct ggml_tensor;

namespace winnow::model {

/// Hyper-parameters of a network and the size of its weights.
struct Outline {
  Hparams hparams;
  std::string weight_type;  ///< most frequent type of the matrices, such as `q4_1`
  std::size_t bytes = 0;    ///< memory that the weights would take
};

/// Checks everything that Weights::load() checks, without reading weights. Throws ModelError like it.
Outline outline(const ModelFile& file, const ModelOptions& options = {});

/// Weights of a GGUF's network: in memory, in the layout that the CPU backend multiplies fastest (mapped or repacked),
/// or on a device. Immutable, thread-safe.
class Weights {
 public:
  /// Throws MemoryError, and ModelError with file, tensor, shape and expectation; also for a tensor that its
  /// architecture does not use.
  static std::shared_ptr<const Weights> load(const ModelFile& file, const ModelOptions& options = {});
  /// The same for a file that is not used otherwise.
  static std::shared_ptr<const Weights> load(const std::string& path, const ModelOptions& options = {});
  ~Weights();

  const Hparams& hparams() const;
  /// Null: none.
  device::Device* device() const;
  const LayerWeights& layer(int l) const;
  ggml_tensor* token_embedding() const;
  /// Embeddings of all layers, [n_layer * n_embd_layer, n_vocab], to be multiplied by sqrt(n_embd_layer); null: none.
  ggml_tensor* layer_embedding() const;
  const Affine& output_norm() const;
  const Affine& output() const;  ///< [n_embd, n_vocab]; a repacked copy of the embedding if they are tied
  ggml_tensor* rope_divisors(int layer) const;  ///< for the layer's unscaled frequencies, [pairs]; null: all are 1
  std::string weight_type() const;              ///< as Outline::weight_type
  std::size_t bytes() const;
  /// A tensor's rows in the file, independent of repacking.
  const std::byte* in_file(const ggml_tensor* tensor) const;
  /// Row of the file's tensor at which a tensor begins: not 0 for splits of fused tensors.
  std::int64_t first_row(const ggml_tensor* tensor) const;
  const std::string& path() const;
  /// Hash of all bytes of the file, or of its parts.
  std::uint64_t hash_of_file() const;

  struct Impl;

 private:
  Weights();
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::model
