// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "attention/device/row_planes.h"
#include "cache/lane_copy.h"
#include "cache/lane_storage.h"
#include "device/device.h"

namespace winnow::attention::device {

/// Keys and values of a layer's lanes in a device's memory, by slot. Like the lanes they lie in one block with each
/// head's initial entries, and in tail blocks; those here are larger.
class LaneRows final : public cache::LaneCopy {
 public:
  /// Slots of a head in a tail block, whose lanes hold a whole number of LaneStorage's.
  static constexpr int kTailBlock = 256;

  /// The copy of lanes, which is made if there is none, with room for all their entries. Its block is up to date;
  /// changed() has the other entries that are not. Throws MemoryError, which changes nothing.
  static LaneRows& of(const cache::LaneStorage& lanes, winnow::device::Device& device);

  /// Consecutive slots.
  struct Part {
    std::byte* keys;
    std::byte* values;
    std::byte* key_scales;  ///< null for elements without scales
    std::byte* value_scales;
    int count;
  };
  /// The slots of a head from `slot` on.
  Part at(int head, int slot) const;

  const cache::LaneStorage& lanes() const { return *lanes_; }
  const RowPlanes& key_planes() const { return keys_; }
  const RowPlanes& value_planes() const { return values_; }

 private:
  /// Rows of all heads: elements and scales of keys, then of values.
  struct Block {
    winnow::device::DeviceMemory memory;
    std::size_t key_scales, values, value_scales;  ///< offsets
  };

  LaneRows(const cache::LaneStorage& lanes, winnow::device::Device& device);
  Block make_block(winnow::device::Device& device, int rows) const;
  void upload(int head);
  /// Adds tail blocks until the longest lane fits.
  void extend(winnow::device::Device& device);
  Part part_of(const Block& block, int row, int count) const;
  int block_slots(int head) const { return first_[as_size(head) + 1] - first_[as_size(head)]; }

  const cache::LaneStorage* lanes_;
  RowPlanes keys_;
  RowPlanes values_;
  std::vector<int> first_;  ///< [H_kv + 1] first row of each head in `block_`
  Block block_;
  std::vector<Block> tail_;  ///< each has kTailBlock rows of head 0, then head 1, …
};

}  // namespace winnow::attention::device
