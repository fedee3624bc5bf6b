// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "attention/device/row_planes.h"
#include "cache/lane_copy.h"
#include "cache/lane_storage.h"
#include "device/device.h"

namespace winnow::attention::device {

class LaneRows;

/// The copies of a session's lanes, whose memory can be freed for something else. Thread-safe, but no copy may be in
/// use while all are freed.
class CopiedLanes {
 public:
  void add(LaneRows* copy);
  void remove(LaneRows* copy);
  void free_all();

 private:
  std::mutex mutex_;
  std::set<LaneRows*> copies_;
};

/// A copy of the keys and values of a layer's lanes in a device's memory, by slot. As in the lanes, one block has each
/// head's initial entries, and later ones are in tail blocks.
class LaneRows final : public cache::LaneCopy {
 public:
  /// Slots of a head in a tail block. A multiple of LaneStorage's, so that runs of the lanes are contiguous here, too.
  static constexpr int kTailBlock = 256;
  static_assert(kTailBlock % cache::LaneStorage::kTailBlock == 0);

  ~LaneRows() override;

  /// The copy of lanes, which is made if there is none, with room for all their entries. It is up to date but for the
  /// entries in changed(), of which there are few. Throws MemoryError.
  static LaneRows& of(const cache::LaneStorage& lanes, winnow::device::Device& device,
                      const std::shared_ptr<CopiedLanes>& all);

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

  /// Frees the memory. The next of() makes another copy.
  void free();

 private:
  /// Rows of all heads: elements and scales of keys, then of values.
  struct Block {
    winnow::device::DeviceMemory memory;
    std::size_t key_scales, values, value_scales;  ///< offsets
  };
  /// Rows of a block.
  struct Place {
    const Block* block;
    int row, count;
  };

  LaneRows(const cache::LaneStorage& lanes, winnow::device::Device& device, std::shared_ptr<CopiedLanes> all);
  Block make_block(winnow::device::Device& device, int rows) const;
  /// Adds tail blocks until the longest lane fits.
  void extend(winnow::device::Device& device);
  /// Copies changed entries if they are many.
  void write_changed();
  /// Copies slots [slot, end) of a lane.
  void write(int head, int slot, int end) const;
  Place place_of(int head, int slot) const;
  int block_slots(int head) const { return first_[as_size(head) + 1] - first_[as_size(head)]; }

  const cache::LaneStorage* lanes_;
  std::shared_ptr<CopiedLanes> all_;
  RowPlanes keys_;
  RowPlanes values_;
  bool is_freed_ = false;
  std::vector<int> first_;  ///< [H_kv + 1] first row of each head in `block_`
  Block block_;
  std::vector<Block> tail_;  ///< each has kTailBlock rows of head 0, then head 1, …
};

}  // namespace winnow::attention::device
