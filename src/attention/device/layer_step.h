// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/decode_items.h"
#include "attention/device/lane_rows.h"
#include "attention/device/staging.h"
#include "attention/device/step_context.h"
#include "attention/device/work_space.h"

namespace winnow::attention::device {

/// Arrays of one layer or several.
struct StepArrays {
  explicit StepArrays(winnow::device::Device& device) : staging(device), work(device) {}
  void clear();
  /// Allocates the device's memory. Throws MemoryError.
  void reserve();

  Staging staging;
  WorkSpace work;
};

/// A layer's attention of a step by a device's kernels, over copies of lanes. Usage: plan(), StepArrays::reserve(),
/// address(), Staging::upload(), store(), decode().
class LayerStep {
 public:
  LayerStep(StepContext& context, StepArrays& arrays) : context_(&context), arrays_(&arrays) {}

  /// Whether the kernels can compute a step.
  static bool supports(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads);

  /// Cuts reads into items, and stages them with the entries that have changed since the last step, but for those that
  /// the step itself stores (`entered`). None of them count as changed from then on. Throws MemoryError.
  void plan(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, int rows,
            std::span<const EnteredRow> entered = {});
  /// Notes again that the staged entries have changed, because nothing of the step is computed.
  void forget();
  /// Fills in addresses.
  void address();
  /// Queue the copies of changed entries to their places, and attention. They return false if a kernel refuses.
  bool store() const;
  bool decode(const float* q, float* out, float* partial) const;

  /// Bytes of the states of items, for decode().
  std::size_t partial_bytes() const;
  /// Offset in the work space behind the probabilities that were asked for, and behind what was there before them.
  std::size_t end_of_probabilities() const { return lse_; }
  /// Copies probabilities to where they were asked for. `work`: the beginning of the work space.
  void deliver(const float* work) const;

  const Shape& shape() const { return shape_; }
  /// The copies that are read.
  std::span<LaneRows* const> copies() const { return copies_; }
  /// The copy of lanes. REQUIRES: they are read.
  LaneRows& copy_of(const cache::LaneStorage& lanes) const;

 private:
  /// Offsets of staged arrays.
  struct Staged {
    std::size_t sinks, positions, centres, factors, first_items, items;
  };
  /// Changed entries of a lane that are consecutive in its copy's memory from `to` on, and the offsets of their rows.
  struct Changed {
    LaneRows* copy;
    int head, first;  ///< slot
    LaneRows::Part to;
    int count;
    std::size_t to_rows, keys, key_scales, values, value_scales;
  };

  void cut(std::span<const DecodeRead> reads);
  void find_angles(const Rope& rope, std::span<const DecodeRead> reads);
  void stage();
  void stage_changes(LaneRows& copy);
  void stage_changes(LaneRows& copy, int head, std::span<const int> slots, const LaneRows::Part& to);
  void place_probabilities();
  void address_items();
  void address_changes();
  /// Index of a row's KV head.
  std::size_t lane_of(int row, int kv_head) const;
  /// A copy, for the type of all.
  const LaneRows& any_copy() const { return *copies_.front(); }

  StepContext* context_;
  StepArrays* arrays_;
  Shape shape_{};
  int rows_ = 0;
  std::vector<LaneRows*> copies_;
  DecodeItems items_;
  winnow::device::Angles angles_{};
  Staged staged_{};
  std::vector<Changed> changed_;
  std::size_t runs_ = 0;                    ///< offset of StoredRun [2][changed]: keys, then values
  std::vector<std::size_t> probabilities_;  ///< [rows * kv_heads] offsets of arrays [group][width]
  std::vector<int> width_;
  std::size_t lse_ = 0;
};

}  // namespace winnow::attention::device
