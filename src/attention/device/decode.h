// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/angle_table.h"
#include "attention/device/decode_items.h"
#include "attention/device/kernel_gate.h"
#include "attention/device/lane_rows.h"
#include "attention/device/staging.h"
#include "attention/device/work_space.h"
#include "device/device.h"

namespace winnow::attention::device {

/// Attention of decode steps by a device's kernels (docs/gpu.md), over copies of lanes. Entries that have changed since
/// the layer's last step, queries and positions are copied to the device together, and so are outputs and probabilities
/// back. Steps that the kernels cannot compute, or for which the device lacks memory, are left to the CPU, and all
/// steps after a kernel has refused one.
class Decode final : public DecodeAttention {
 public:
  /// REQUIRES: the device has kernels and outlives this object.
  Decode(winnow::device::Device& device, MemoryAccount& account, std::unique_ptr<DecodeAttention> cpu)
      : device_(device),
        account_(account),
        cpu_(std::move(cpu)),
        gate_(device, "attention of decode steps"),
        staging_(device),
        work_(device) {}

  void begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
             int rows) override;
  /// One thread waits for the device.
  void run(Worker worker) override;
  void merge(Worker worker) override;
  void free_copies() override { copied_->free_all(); }

  std::size_t bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const override;

 private:
  /// A layer's step, whose arguments are those of begin().
  struct Step {
    Shape shape;
    float* out;
    int rows;
    std::size_t queries() const { return as_size(rows) * as_size(shape.query_heads); }
    std::size_t elements() const { return queries() * as_size(shape.head_dim); }
  };
  /// Offsets of staged arrays.
  struct Staged {
    std::size_t q, sinks, positions, centres, factors, first_items, items;
  };
  /// Changed entries of a lane that are consecutive in its copy's memory from `to` on, and the offsets of their rows.
  struct Changed {
    LaneRows::Part to;
    int count;
    std::size_t to_rows, keys, key_scales, values, value_scales;
  };
  /// Arrays in the work space, by offset. Those that are copied to the host come first.
  struct Results {
    std::size_t lse, partial;
    std::vector<std::size_t> probabilities;  ///< [rows * kv_heads] of arrays [group][width]
    std::vector<int> width;
    std::vector<float> on_host;  ///< outputs and probabilities
  };

  bool supports(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads) const;
  /// Queues a step. Returns false if a kernel refuses it. Throws MemoryError.
  bool queue(const Rope& rope, std::span<const DecodeRead> reads, const float* q);
  void cut(std::span<const DecodeRead> reads);
  void stage(const float* q);
  void stage_changes(LaneRows& copy);
  void stage_changes(const LaneRows& copy, int head, std::span<const int> slots, const LaneRows::Part& to);
  void place_results();
  void address_items();
  void address_changes();
  bool store();
  bool decode(const winnow::device::Angles& angles);
  winnow::device::Angles angles_for(const Rope& rope, std::span<const DecodeRead> reads);
  /// A copy, for the type of all.
  const LaneRows& any_copy() const { return *copies_.front(); }

  winnow::device::Device& device_;
  MemoryAccount& account_;
  std::unique_ptr<DecodeAttention> cpu_;
  KernelGate gate_;
  bool is_on_cpu_ = false;
  Step step_{};
  std::shared_ptr<CopiedLanes> copied_ = std::make_shared<CopiedLanes>();
  std::vector<LaneRows*> copies_;  ///< those that are read
  DecodeItems items_;
  Staging staging_;
  WorkSpace work_;
  Staged staged_{};
  std::vector<Changed> changed_;
  std::size_t runs_ = 0;  ///< offset of StoredRun [2][changed]: keys, then values
  Results results_;
  std::vector<std::unique_ptr<AngleTable>> angles_;  ///< one for each Rope so far
};

}  // namespace winnow::attention::device
