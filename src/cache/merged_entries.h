// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/as_size.h"
#include "base/memory.h"

namespace winnow::cache {

/// An entry without vectors of its own. It reads the key and value of its centre, an entry in another slot; the key is
/// multiplied by `scale` and rotated to the merged entry's own effective position.
struct MergedEntry {
  std::int32_t slot = 0;  ///< the centre's
  std::int32_t position = 0;
  float scale = 1;
};

/// Merged entries of one lane, ordered by their centres' slots, with the same f32 columns as the lane's entries. Not
/// thread-safe.
class MergedEntries {
 public:
  MergedEntries(MemoryAccount& account, int columns) : account_(&account), columns_(columns) {}
  MergedEntries clone(MemoryAccount& account) const;

  /// Bytes of a merged entry.
  static std::size_t bytes(int columns) { return (4 + as_size(columns)) * sizeof(float); }

  int count() const { return count_; }
  /// Fields of all merged entries, in their order, [count].
  std::span<std::int32_t> slots() { return integers(0); }
  std::span<std::int32_t> positions() { return integers(1); }
  std::span<std::int32_t> ranks() { return integers(2); }
  std::span<float> scales() { return floats(3); }
  std::span<float> column(int c) { return floats(4 + c); }
  std::span<const std::int32_t> slots() const { return const_cast<MergedEntries*>(this)->slots(); }
  std::span<const std::int32_t> positions() const { return const_cast<MergedEntries*>(this)->positions(); }
  std::span<const std::int32_t> ranks() const { return const_cast<MergedEntries*>(this)->ranks(); }
  std::span<const float> scales() const { return const_cast<MergedEntries*>(this)->scales(); }
  std::span<const float> column(int c) const { return const_cast<MergedEntries*>(this)->column(c); }

  /// Merged entries [first, end), those of a range of slots.
  struct Range {
    int first;
    int end;
    int count() const { return end - first; }
  };
  Range of(std::int32_t slot, std::int32_t slot_end) const;
  Range of(std::int32_t slot) const { return of(slot, slot + 1); }

  /// Ensures that `count` more can be added without allocation, and frees memory beyond that. Throws MemoryError.
  void reserve(int count);
  /// Adds a merged entry after those of the same slot, with columns and rank 0. Returns its index. REQUIRES: reserve().
  int add(const MergedEntry& merged_entry);
  /// Removes merged entries [range.first, range.end).
  void erase(Range range);
  /// Moves the merged entries of one slot to another, after its own.
  void move(std::int32_t from, std::int32_t to);

 private:
  int arrays() const { return 4 + columns_; }
  std::uint32_t* array(int a) {
    return memory_.as<std::uint32_t>().data() + static_cast<std::ptrdiff_t>(a) * capacity_;
  }
  std::span<std::int32_t> integers(int a) { return {reinterpret_cast<std::int32_t*>(array(a)), as_size(count_)}; }
  std::span<float> floats(int a) { return {reinterpret_cast<float*>(array(a)), as_size(count_)}; }

  MemoryAccount* account_;
  int columns_;
  int count_ = 0;
  int capacity_ = 0;
  Buffer memory_;  ///< slot, position, rank, scale, then the columns, each [capacity]
};

}  // namespace winnow::cache
