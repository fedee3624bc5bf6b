// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "base/worker.h"
#include "device/on_device.h"

namespace winnow::network {

/// The attention slot: the place of attention in a layer's graph. The graph computes rotated queries, rotated keys, and
/// values of its rows. It then calls the phases below, with a barrier of the thread pool between any two, and reads
/// `out`. The implementation decides what the rows are (a chunk of a prompt, one token of each of many sequences,
/// chosen tokens of a document), where K and V are stored, and which entries are attended to.
class AttentionOp {
 public:
  static constexpr int kPhases = 4;

  virtual ~AttentionOp() = default;

  /// All pointers are f32: q and out [rows][H_q][d], k and v [rows][H_kv][d], valid during the layer. k and v are null
  /// in KV-sharing layers (model::Hparams::kv_layer()).
  struct Tensors {
    int layer = 0;
    int rows = 0;
    const float* q = nullptr;
    const float* k = nullptr;
    const float* v = nullptr;
    float* out = nullptr;
    const float* input = nullptr;  ///< [rows][width] the rows that queries, keys and values are computed from; only in
                                   ///< phase 0
    int width = 0;
  };

  /// A graph whose tensors are in a device's memory is about to run; these are those of its slots, in order.
  virtual void begin_on_device(std::span<const Tensors> /*slots*/) {}
  /// Does the work of all phases for tensors in a device's memory, if it can; otherwise nothing, and phases follow for
  /// copies of the tensors. Called by one thread. Throws Error.
  virtual device::OnDevice attend_on_device(const Tensors& /*tensors*/) { return device::OnDevice::not_done; }
  /// The graph has been queued. Returns the first layer with a value that is not finite, found since then.
  virtual std::optional<int> end_on_device() { return {}; }

  /// Called for phase 0, 1, … by every thread of the team. `out` is complete after the last phase. Must not throw:
  /// allocations are made before the graph runs; other errors are kept and rethrown after it.
  virtual void phase(int number, const Tensors& tensors, Worker worker) noexcept = 0;
};

}  // namespace winnow::network
