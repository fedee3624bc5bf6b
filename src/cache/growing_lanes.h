// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/memory.h"
#include "cache/keep_plan.h"
#include "cache/lanes.h"
#include "cache/scratch.h"

namespace winnow::cache {

/// Lanes to which a prompt, a file or single tokens add entries. Functions without a head, such as reserve(), are for
/// one thread only.
class GrowingLanes : public LayerLanes {
 public:
  GrowingLanes(MemoryAccount& account, const LaneShape& shape);
  /// A deep copy.
  GrowingLanes clone(MemoryAccount& account) const;

  /// Encodes the entries of the scratch that `plan` keeps. REQUIRES: the lanes are empty. Throws MemoryError.
  void commit(const KeepPlan& plan, const LayerScratch& scratch);
  /// Takes over entries stored in the lanes' account, and ranks them.
  void assign(LaneContents contents);
  /// Replaces the entries from a position on by those of other lanes of the same shape. All entries are then in one
  /// block of exactly their number. REQUIRES: slots_before(). Throws MemoryError before anything has changed.
  void put_from(std::int32_t position, GrowingLanes&& others);

  /// Adds the entries of other lanes of the same shape, which are all later than these. REQUIRES: reserve(); the others
  /// have rotated keys and no merged entries.
  void append(GrowingLanes&& others);

  /// Like put_from() for lanes with windows, which hold the last entries of the text without gaps: keeps at most `most`
  /// of them. REQUIRES: rotated keys.
  void put_last(std::int32_t position, GrowingLanes&& others, int most);

  /// Ensures that every head can take `count` more entries without allocation, and frees tail blocks beyond that.
  /// Throws MemoryError.
  void reserve(int count) { contents_.storage.reserve(count); }
  /// Ensures that every head can take `count` more merged entries without allocation. Throws MemoryError.
  void reserve_merged_entries(int count);
  /// Appends an entry to a lane. Its state is 0. Returns its slot. REQUIRES: reserve().
  int append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Evicts an entry and stores another in its slot. Its state is 0.
  void replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);

  /// Replaces the key, which is rotated to the entry's position, and the value of an entry.
  void fill(int head, int slot, std::span<const float> key, std::span<const float> value);

  /// Closes a lane's ring, its first `slots` entries: moves each later entry into the slot of the oldest one.
  void close_ring(int head, int slots);

  MemoryAccount& account() const { return *account_; }

 private:
  GrowingLanes(MemoryAccount& account, LaneContents contents, Summaries summaries);

  void write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);

  MemoryAccount* account_;
};

}  // namespace winnow::cache
