// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/worker.h"
#include "model/weights.h"
#include "network/compute_graph.h"

namespace winnow::network {

/// The output projection of a layer as a matrix for each query head: the inputs that are the head's, [d, n_embd] f32.
/// Measures what each makes of values.
class HeadOutputs {
 public:
  /// Values that pass together: what one head makes of them stays in the cache.
  static constexpr int kTokens = 256;

  /// Bytes at the peak, packed matrices and the graph's included, of the layer that takes the most.
  static std::size_t bytes(const model::Hparams& hparams);
  /// How many layers' nodes the graph has room for.
  static int layers_of_graph(const model::Hparams& hparams);

  /// Throws MemoryError. Then each thread of a team calls unpack().
  HeadOutputs(const model::Weights& weights, int layer, MemoryAccount& account, int threads);
  void unpack(Worker worker) noexcept;

  /// [H_q]
  std::span<const ggml_tensor* const> matrices() const { return matrices_; }
  int kv_heads() const { return static_cast<int>(heads_.size()) / group_; }
  /// Of a graph's tokens in a KV head, [count][d].
  float* values(int kv_head) {
    return values_.as<float>().data() + static_cast<std::ptrdiff_t>(kv_head) * kTokens * dim_;
  }
  /// Adds what measures the values of so many tokens.
  ggml_tensor* add_lengths(ggml_context* context, ComputeGraph& graph, int count);
  /// What a graph has measured, as tokens [first, first + count) of rows of so many.
  void copy_lengths(int first, int tokens, int count, std::span<float> absolute, std::span<float> euclidean) const;

 private:
  const ggml_tensor& projection_;
  const std::byte* source_;  ///< its rows as the file has them
  int dim_;
  int group_;
  std::vector<std::byte> metadata_;
  ggml_context_ptr context_;
  std::vector<const ggml_tensor*> matrices_;
  std::vector<int> heads_;  ///< 0 … H_q - 1: graphs point to them
  Buffer weights_;          ///< [H_q][n_embd][d]
  Buffer rows_;             ///< [threads][H_q d]
  Buffer values_;           ///< [H_kv][kTokens][d]
  Buffer lengths_;          ///< [H_q][2][count]
};

}  // namespace winnow::network
