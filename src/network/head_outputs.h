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

/// The output projection of a layer, split into one matrix [d, n_embd] f32 per query head. Computes the norms of each
/// head's outputs.
class HeadOutputs {
 public:
  /// Values per graph: the outputs of one head for them fit into the cache.
  static constexpr int kTokens = 256;

  /// Peak bytes for any layer, including packed matrices and the graph.
  static std::size_t bytes(const model::Hparams& hparams);
  /// Size of the graph, in layers' worth of nodes.
  static int layers_of_graph(const model::Hparams& hparams);

  /// REQUIRES: each thread of a team calls unpack() afterwards. Throws MemoryError.
  HeadOutputs(const model::Weights& weights, int layer, MemoryAccount& account, int threads);
  void unpack(Worker worker) noexcept;

  /// [H_q]
  std::span<const ggml_tensor* const> matrices() const { return matrices_; }
  int kv_heads() const { return static_cast<int>(heads_.size()) / group_; }
  /// Values of the current tokens in a KV head, [count][d].
  float* values(int kv_head) {
    return values_.as<float>().data() + static_cast<std::ptrdiff_t>(kv_head) * kTokens * dim_;
  }
  /// Adds the nodes that compute the norms for `count` tokens.
  ggml_tensor* add_lengths(ggml_context* context, ComputeGraph& graph, int count);
  /// Copies the results of a graph to tokens [first, first + count) of rows of length `tokens`.
  void copy_lengths(int first, int tokens, int count, std::span<float> absolute, std::span<float> euclidean) const;

 private:
  const ggml_tensor& projection_;
  const std::byte* source_;  ///< rows of the projection in the file
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
