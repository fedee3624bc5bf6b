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

  /// Makes sure that every head can take `count` more entries without allocating, and frees pages that are not needed
  /// for that. Throws MemoryError.
  void reserve(int count) { contents_.storage.reserve(count); }
  /// Makes sure that every head can take `count` more merged entries without allocating. Throws MemoryError.
  void reserve_merged_entries(int count);
  /// Adds an entry at the end of one lane: slot length(head). REQUIRES: reserve(). Its state starts at 0.
  void append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Evicts one entry and stores another in its slot. Its state starts at 0.
  void replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);

  MemoryAccount& account() const { return *account_; }

 private:
  GrowingLanes(MemoryAccount& account, LaneContents contents, Summaries summaries);

  void write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);

  MemoryAccount* account_;
};

}  // namespace winnow::cache
