// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/layer_step.h"
#include "attention/device/step_context.h"
#include "attention/device/whole_step.h"
#include "device/device.h"

namespace winnow::attention::device {

/// Attention of decode steps by a device's kernels (docs/gpu.md), over copies of lanes. Queries and new entries may be
/// in the device's memory (on_device()). Otherwise entries that have changed since the layer's last step, queries and
/// positions are copied to the device together, and so are outputs and probabilities back. Steps that the kernels
/// cannot compute, or for which the device lacks memory, are left to the CPU, and all steps after a kernel has refused
/// one.
class Decode final : public DecodeAttention {
 public:
  /// REQUIRES: the device has kernels and outlives this object.
  Decode(winnow::device::Device& device, MemoryAccount& account, std::unique_ptr<DecodeAttention> cpu)
      : cpu_(std::move(cpu)),
        context_(device, account),
        arrays_(device),
        layer_(context_, arrays_),
        step_(std::make_unique<WholeStep>(context_)) {}

  void begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
             int rows) override;
  /// One thread waits for the device.
  void run(Worker worker) override;
  void merge(Worker worker) override;
  DeviceStep* on_device() const override {
    return context_.gate.is_open() && context_.device.is_in_order() ? step_.get() : nullptr;
  }
  void free_copies() override { context_.copied->free_all(); }

  std::size_t bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const override;

 private:
  /// Queues a layer's step. Returns false if a kernel refuses it. Throws MemoryError.
  bool queue(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, int rows);

  std::unique_ptr<DecodeAttention> cpu_;
  StepContext context_;
  bool is_on_cpu_ = false;
  StepArrays arrays_;
  LayerStep layer_;
  float* out_ = nullptr;
  std::size_t elements_ = 0;    ///< of queries and outputs
  std::vector<float> on_host_;  ///< outputs and probabilities
  std::unique_ptr<WholeStep> step_;
};

}  // namespace winnow::attention::device
