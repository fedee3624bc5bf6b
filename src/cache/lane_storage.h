// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"
#include "cache/lane_copy.h"
#include "cache/lane_shape.h"

namespace winnow::cache {

/// Addresses of an entry's key and value.
struct StoredVectors {
  std::byte* key;
  std::byte* value;
};

/// Addresses of the parts of an entry. Its vectors are changed by LaneStorage::change().
struct StoredEntry {
  const std::byte* key;
  const std::byte* value;
  std::int32_t* position;
  std::int32_t* rank;      ///< null unless LaneShape::has_ranks()
  float* state;            ///< column 0
  std::size_t state_step;  ///< floats between columns

  float* column(int c) const { return state + as_size(c) * state_step; }
};

/// Memory for the entries of one layer of one sequence: a lane for each KV head, each with its own length. A lane is
/// one block of exactly its initial entries, and a tail of smaller blocks for later ones. Entries are addressed by
/// slot, 0 … length-1, initial block first; the order of slots has no meaning, and the storage does not interpret its
/// bytes. Not thread-safe, except that threads may change different heads; allocate() and reserve() are for one thread
/// only.
class LaneStorage {
 public:
  /// Entries of a tail block.
  static constexpr int kTailBlock = 32;

  /// Lanes without entries.
  LaneStorage(MemoryAccount& account, const LaneShape& shape);
  /// A deep copy, without the copy for a device.
  LaneStorage clone(MemoryAccount& account) const;

  const LaneShape& shape() const { return shape_; }
  /// The copy of keys and values for a device, made by whoever computes there; null: none.
  std::unique_ptr<LaneCopy>& device_copy() const { return copy_; }
  int length(int head) const { return length_[head]; }
  /// Slots of a lane's initial block, used or not.
  int block_slots(int head) const { return block_first_[as_size(head) + 1] - block_first_[head]; }

  /// Replaces all lanes by lanes of these lengths [H_kv], each in its initial block, with undefined contents. Throws
  /// MemoryError.
  void allocate(std::span<const int> lengths);
  /// Ensures that every lane can take `count` more entries without allocation, and frees tail blocks beyond that.
  /// Throws MemoryError.
  void reserve(int count);
  /// Appends entries with undefined contents to a lane. Returns the slot of the first one. REQUIRES: reserve().
  int append(int head, int count = 1);
  /// Removes an entry; the lane's last entry moves into its slot.
  void remove(int head, int slot);

  /// Removes the entries from slot `length` on.
  void cut(int head, int length) { length_[head] = length; }

  /// Addresses of an entry, valid also for the rest of its run(), whose parts are contiguous. The storage owns the
  /// memory; constness is that of the lanes around it.
  StoredEntry entry(int head, int slot) const;
  /// Number of contiguous slots at the beginning of [slot, end).
  int run(int head, int slot, int end) const;
  /// Calls each(StoredEntry, count) for all runs of a lane, in slot order.
  template <class Each>
  void for_each_run(int head, const Each& each) const;
  /// Addresses of an entry's vectors, which the caller changes; valid also for the next `count` - 1 entries of its
  /// run().
  StoredVectors change(int head, int slot, int count = 1);
  /// Copies an entry of storage of the same shape to a slot.
  void copy(const StoredEntry& from, int head, int slot);

 private:
  /// Consecutive slots of all heads: the initial blocks (of different lengths) or one tail block each (kTailBlock
  /// slots).
  struct Slab {
    Buffer keys;
    Buffer values;
    Buffer positions;
    Buffer ranks;
    Buffer state;
  };
  Slab make_slab(int entries) const;
  static Slab copy_slab(MemoryAccount& account, const Slab& from);
  StoredEntry entry_of(const Slab& slab, int first, int capacity, int index) const;

  MemoryAccount* account_;
  LaneShape shape_;
  std::size_t key_bytes_;    ///< per entry
  std::size_t value_bytes_;  ///< per entry
  Slab block_;
  std::vector<int> block_first_;  ///< [H_kv + 1] first slot of each head in `block_`
  std::vector<int> length_;       ///< [H_kv] entries in use
  std::vector<Slab> tail_;        ///< each has kTailBlock slots of head 0, then head 1, …
  mutable std::unique_ptr<LaneCopy> copy_;
};

inline StoredEntry LaneStorage::entry_of(const Slab& slab, int first, int capacity, int index) const {
  const auto at = as_size(first + index);
  const auto integers = [at](const Buffer& buffer) {
    return buffer.empty() ? nullptr : const_cast<std::int32_t*>(buffer.as<std::int32_t>().data()) + at;
  };
  auto* const state = const_cast<float*>(slab.state.as<float>().data());
  return {slab.keys.data() + at * key_bytes_,
          slab.values.data() + at * value_bytes_,
          integers(slab.positions),
          integers(slab.ranks),
          state == nullptr ? nullptr : state + static_cast<std::ptrdiff_t>(first) * shape_.state_columns + index,
          as_size(capacity)};
}

inline StoredEntry LaneStorage::entry(int head, int slot) const {
  const int in_block = block_slots(head);
  if (slot < in_block) return entry_of(block_, block_first_[head], in_block, slot);
  const int tail = slot - in_block;
  return entry_of(tail_[tail / kTailBlock], head * kTailBlock, kTailBlock, tail % kTailBlock);
}

inline StoredVectors LaneStorage::change(int head, int slot, int count) {
  if (copy_ != nullptr) copy_->mark_changed(head, slot, count);
  const StoredEntry at = entry(head, slot);
  return {const_cast<std::byte*>(at.key), const_cast<std::byte*>(at.value)};
}

template <class Each>
void LaneStorage::for_each_run(int head, const Each& each) const {
  const int all = length(head);
  for (int slot = 0; slot < all;) {
    const int count = run(head, slot, all);
    each(entry(head, slot), count);
    slot += count;
  }
}

}  // namespace winnow::cache
