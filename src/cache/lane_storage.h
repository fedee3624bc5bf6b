// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"
#include "cache/lane_shape.h"

namespace winnow::cache {

/// Where the parts of one entry are stored.
struct StoredEntry {
  std::byte* key;
  std::byte* value;
  std::int32_t* position;
  std::int32_t* rank;      ///< null without LaneShape::has_ranks()
  float* state;            ///< column 0
  std::size_t state_step;  ///< floats from one column to the next

  float* column(int c) const { return state + as_size(c) * state_step; }
};

/// Memory for the entries of one layer of one sequence: one lane for each KV head, each with its own length. A lane is
/// a block of exactly as many entries as it began with, plus a tail of pages for those that came after. Entries are
/// addressed by slot: 0 … length-1, block first; the order of slots means nothing. What is stored means nothing here
/// either. Not thread-safe, except that threads may change different heads; allocate() and reserve() are for one thread
/// alone.
class LaneStorage {
 public:
  /// Entries of one tail page.
  static constexpr int kPage = 32;

  /// All lanes are empty.
  LaneStorage(MemoryAccount& account, const LaneShape& shape);
  /// A copy with memory of its own.
  LaneStorage clone(MemoryAccount& account) const;

  const LaneShape& shape() const { return shape_; }
  int length(int head) const { return length_[head]; }
  /// Slots of a lane's block, in use or not.
  int block_slots(int head) const { return block_first_[as_size(head) + 1] - block_first_[head]; }

  /// Begins anew with lanes of these lengths [H_kv], each in its block; what is stored is undefined. Throws
  /// MemoryError.
  void allocate(std::span<const int> lengths);
  /// Makes sure that every lane can take `count` more entries without allocating, and frees pages that are not needed
  /// for that. Throws MemoryError.
  void reserve(int count);
  /// Adds entries at the end of one lane; what is stored is undefined. Returns the first one's slot. REQUIRES:
  /// reserve().
  int append(int head, int count = 1);
  /// Drops one entry; the lane's last entry moves into its slot.
  void remove(int head, int slot);

  /// Drops the entries from slot `length` on.
  void cut(int head, int length) { length_[head] = length; }

  /// One entry, and as many after it as run() says: their parts follow one another. The storage owns the memory; it is
  /// as constant as the lanes around it.
  StoredEntry entry(int head, int slot) const;
  /// Slots of [slot, end) that lie together, from the first on.
  int run(int head, int slot, int end) const;
  /// Calls each(StoredEntry, count) over a whole lane, in slot order, for entries that lie together.
  template <class Each>
  void for_each_run(int head, const Each& each) const;
  /// Copies an entry of a storage of the same shape.
  void copy(const StoredEntry& from, const StoredEntry& to) const;

 private:
  /// Consecutive slots of all heads: the blocks (heads of different length) or a page (kPage each).
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
  std::size_t key_bytes_;    ///< of an entry
  std::size_t value_bytes_;  ///< of an entry
  Slab block_;
  std::vector<int> block_first_;  ///< [H_kv + 1] where each head's slots begin in the block
  std::vector<int> length_;       ///< [H_kv] entries in use
  std::vector<Slab> pages_;       ///< each kPage slots of head 0, then head 1, …
};

inline StoredEntry LaneStorage::entry_of(const Slab& slab, int first, int capacity, int index) const {
  const auto at = as_size(first + index);
  const auto integers = [at](const Buffer& buffer) {
    return buffer.empty() ? nullptr : const_cast<std::int32_t*>(buffer.as<std::int32_t>().data()) + at;
  };
  auto* const state = const_cast<float*>(slab.state.as<float>().data());
  return {const_cast<std::byte*>(slab.keys.data()) + at * key_bytes_,
          const_cast<std::byte*>(slab.values.data()) + at * value_bytes_,
          integers(slab.positions),
          integers(slab.ranks),
          state == nullptr ? nullptr : state + static_cast<std::ptrdiff_t>(first) * shape_.state_columns + index,
          as_size(capacity)};
}

inline StoredEntry LaneStorage::entry(int head, int slot) const {
  const int in_block = block_slots(head);
  if (slot < in_block) return entry_of(block_, block_first_[head], in_block, slot);
  const int tail = slot - in_block;
  return entry_of(pages_[tail / kPage], head * kPage, kPage, tail % kPage);
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
