// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"
#include "cache/keep_plan.h"
#include "cache/lane_piece.h"
#include "cache/lane_shape.h"
#include "cache/lane_storage.h"
#include "cache/merged_entries.h"
#include "cache/summaries.h"

namespace winnow::cache {

/// Consecutive slots of a lane whose positions and state lie together.
struct LaneSpan {
  int first = 0;  ///< slot
  std::span<const std::int32_t> positions;
  float* state = nullptr;      ///< column 0
  std::size_t state_step = 0;  ///< floats from one column to the next

  int count() const { return static_cast<int>(positions.size()); }
  std::span<float> column(int c) const { return {state + as_size(c) * state_step, positions.size()}; }
};

/// The entries of one layer's lanes, and how their keys are rotated.
struct LaneContents {
  /// All lanes are empty.
  LaneContents(MemoryAccount& account, const LaneShape& shape);
  LaneContents clone(MemoryAccount& account) const;

  /// Positions of all entries of a lane, by slot, then of the merged entries.
  std::vector<std::int32_t> positions(int head) const;
  /// Encodes a key that is rotated to a position, without that rotation; `key` loses it, too.
  void store_unrotated(std::span<float> key, std::int32_t position, std::byte* to) const;

  LaneStorage storage;
  std::vector<MergedEntries> merged_entries;  ///< [H_kv]
  std::vector<char> unrotated;                ///< [H_kv] whether a lane's keys are
  std::int32_t end = 0;                       ///< all positions are below
};

/// The kept entries of one layer of one sequence, as attention and a method see them: with positions, keys that are
/// rotated or not, and merged entries. A lane's slots are those of LaneStorage. Not thread-safe, except that threads
/// may change the entries of different heads.
class LayerLanes {
 public:
  const LaneShape& shape() const { return contents_.storage.shape(); }

  /// Entries with vectors of their own.
  int length(int head) const { return contents_.storage.length(head); }
  /// All entries that attention sees: those and their merged entries.
  int entries(int head) const { return length(head) + merged_entries(head).count(); }
  std::int32_t position(int head, int slot) const { return *entry(head, slot).position; }
  /// One entry's key as it is stored, [d] f32.
  void key(int head, int slot, std::span<float> out) const;
  /// One entry's value, [d] f32.
  void value(int head, int slot, std::span<float> out) const;
  float& state(int head, int column, int slot) { return *entry(head, slot).column(column); }
  float state(int head, int column, int slot) const { return *entry(head, slot).column(column); }
  /// Calls each(LaneSpan) over a whole lane, in slot order: for loops over all entries, which position() and state()
  /// are too slow for.
  template <class Each>
  void for_each_span(int head, const Each& each);
  /// The slots of a range, in slot order and in pieces that are contiguous in memory, and then their merged entries.
  void pieces(int head, const AttendRange& range, std::vector<LanePiece>& out) const;

  /// Drops one entry and its merged entries; the lane's last entry moves into its slot.
  void remove(int head, int slot);
  /// Stores other vectors for an entry, [d] each. REQUIRES: un-rotated keys.
  void overwrite(int head, int slot, std::span<const float> key, std::span<const float> value);
  /// Adds to the values of some entries, [d]; encoded anew.
  void add_to_values(int head, std::span<const int> slots, std::span<const float> addend);

  /// Whether the lane's keys are un-rotated (LaneShape::unrotates).
  bool is_unrotated(int head) const { return contents_.unrotated[head] != 0; }
  /// Un-rotates all keys of a lane; done by itself when an entry is evicted. REQUIRES: LaneShape::unrotates.
  void unrotate(int head);

  MergedEntries& merged_entries(int head) { return contents_.merged_entries[head]; }
  const MergedEntries& merged_entries(int head) const { return contents_.merged_entries[head]; }
  /// An entry gives up its vectors: it and its merged entries become merged entries of the one in slot `centre`, with
  /// keys `scale` times as long as before in its units. The lane's last entry moves into its slot. REQUIRES:
  /// GrowingLanes::reserve_merged_entries(), un-rotated keys.
  void merge_into(int head, int slot, int centre, float scale);
  /// Drops one merged entry.
  void remove_merged_entry(int head, int index);

  Summaries& summaries() { return summaries_; }
  const Summaries& summaries() const { return summaries_; }

  /// What is stored, for those who write it elsewhere.
  const LaneStorage& storage() const { return contents_.storage; }

 protected:
  LayerLanes(LayerLanes&&) = default;
  LayerLanes& operator=(LayerLanes&&) = default;
  ~LayerLanes() = default;

 private:
  friend class GrowingLanes;

  LayerLanes(LaneContents contents, Summaries summaries)
      : contents_(std::move(contents)), summaries_(std::move(summaries)) {}

  StoredEntry entry(int head, int slot) const { return contents_.storage.entry(head, slot); }
  /// Gives each entry of a lane its rank, merged entries included. REQUIRES: has_ranks().
  void rank(int head);
  /// All entries after one that is evicted move up one rank.
  void close_ranks(int head, std::int32_t evicted);
  /// The lane's last entry moves into a slot that has become free.
  void fill_slot(int head, int slot);
  /// Adds the merged entries of the rows in pieces from `first_piece` on.
  void add_merged_entries(int head, std::size_t first_piece, std::vector<LanePiece>& out) const;

  LaneContents contents_;
  Summaries summaries_;
};

template <class Each>
void LayerLanes::for_each_span(int head, const Each& each) {
  int slot = 0;
  contents_.storage.for_each_run(head, [&each, &slot](const StoredEntry& at, int count) {
    each(LaneSpan{slot, {at.position, as_size(count)}, at.state, at.state_step});
    slot += count;
  });
}

/// Slots of a lane whose entries stand before a position. REQUIRES: the others come after them.
int slots_before(const LayerLanes& lanes, int head, std::int32_t position);

}  // namespace winnow::cache
