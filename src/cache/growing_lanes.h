// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/memory.h"
#include "cache/keep_plan.h"
#include "cache/lanes.h"
#include "cache/scratch.h"

namespace winnow::cache {

/// Lanes that entries are added to: by a prompt, by a file, by each token. reserve…() and what names no head are for
/// one thread alone.
class GrowingLanes : public LayerLanes {
 public:
  GrowingLanes(MemoryAccount& account, const LaneShape& shape);
  /// A copy with memory of its own.
  GrowingLanes clone(MemoryAccount& account) const;

  /// Encodes what `plan` keeps of the scratch. REQUIRES: the lanes are empty. Throws MemoryError.
  void commit(const KeepPlan& plan, const LayerScratch& scratch);
  /// Takes over entries that somebody else has stored in the lanes' account, and ranks them.
  void assign(LaneContents contents);
  /// Puts the entries of other lanes of the same shape in the place of those from a position on; all then lie in one
  /// block of exactly their number. REQUIRES: slots_before(). Throws MemoryError before anything has changed.
  void put_from(std::int32_t position, GrowingLanes&& others);

  /// Adds the entries of other lanes of the same shape, which come after all of these. REQUIRES: reserve(); none of
  /// theirs is merged, and their keys are rotated.
  void append(GrowingLanes&& others);

  /// As put_from() where a lane holds the last entries of the text, without a gap, and at most `most` of them: those
  /// before go. REQUIRES: keys that are not un-rotated.
  void put_last(std::int32_t position, GrowingLanes&& others, int most);

  /// Makes sure that every head can take `count` more entries without allocating, and frees pages that are not needed
  /// for that. Throws MemoryError.
  void reserve(int count) { contents_.storage.reserve(count); }
  /// Makes sure that every head can take `count` more merged entries without allocating. Throws MemoryError.
  void reserve_merged_entries(int count);
  /// Adds an entry at the end of one lane: slot length(head). REQUIRES: reserve(). Its state starts at 0.
  void append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Evicts one entry and stores another in its slot. Its state starts at 0.
  void replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);

  /// Of a lane whose first `slots` entries are a ring, in the order of their positions from the oldest on: the entries
  /// behind them take the slots of the oldest, one after the other.
  void close_ring(int head, int slots);

  MemoryAccount& account() const { return *account_; }

 private:
  GrowingLanes(MemoryAccount& account, LaneContents contents, Summaries summaries);

  void write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);

  MemoryAccount* account_;
};

}  // namespace winnow::cache
