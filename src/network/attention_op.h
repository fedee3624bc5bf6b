// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/worker.h"

namespace winnow::network {

/// The attention slot: the place in a layer's graph where attention happens. The graph computes rotated queries,
/// rotated keys and values of its rows. It then calls the stages below, with a barrier of the thread pool between any
/// two, and reads `out`. The implementation decides what rows mean (a chunk of a prompt, one token of each of many
/// sequences, chosen tokens of a document), where K and V are stored and what is attended to.
class AttentionOp {
 public:
  static constexpr int kStages = 4;

  virtual ~AttentionOp() = default;

  /// All pointers are f32: q and out [rows][H_q][d], k and v [rows][H_kv][d], valid during the layer. k and v are null
  /// where the layer reads what another one has stored (model::Hparams::kv_layer()).
  struct Tensors {
    int layer = 0;
    int rows = 0;
    const float* q = nullptr;
    const float* k = nullptr;
    const float* v = nullptr;
    float* out = nullptr;
    const float* input = nullptr;  ///< [rows][width] what queries, keys and values are made of; in stage 0 alone
    int width = 0;
  };

  /// Called for stage 0, 1, … by every thread of the team. `out` is complete after the last one. Must not throw: work
  /// that can fail (allocation) is done before the graph runs, or the error is kept and rethrown after it.
  virtual void stage(int number, const Tensors& tensors, Worker worker) noexcept = 0;
};

}  // namespace winnow::network
