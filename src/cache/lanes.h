// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"
#include "cache/keep_plan.h"
#include "cache/lane_run.h"
#include "cache/lane_shape.h"
#include "cache/lane_storage.h"
#include "cache/merged_entries.h"
#include "cache/summaries.h"

namespace winnow::cache {

/// Consecutive slots of a lane with contiguous positions and state.
struct LaneSpan {
  int first = 0;  ///< slot
  std::span<const std::int32_t> positions;
  float* state = nullptr;      ///< column 0
  std::size_t state_step = 0;  ///< floats between columns

  int count() const { return static_cast<int>(positions.size()); }
  std::span<float> column(int c) const { return {state + as_size(c) * state_step, positions.size()}; }
};

/// Entries of one layer's lanes, and the rotation of their keys.
struct LaneContents {
  /// Lanes without entries.
  LaneContents(MemoryAccount& account, const LaneShape& shape);
  LaneContents clone(MemoryAccount& account) const;

  /// Positions of a lane's entries by slot, then of its merged entries.
  std::vector<std::int32_t> positions(int head) const;
  /// Un-rotates a key from its position, in place, and encodes it.
  void store_unrotated(std::span<float> key, std::int32_t position, std::byte* to) const;

  LaneStorage storage;
  std::vector<MergedEntries> merged_entries;  ///< [H_kv]
  std::vector<char> unrotated;                ///< [H_kv] true if the lane's keys are un-rotated
  std::int32_t end = 0;                       ///< upper bound of all positions, exclusive
};

/// Kept entries of one layer of one sequence, as attention and methods see them: with positions, rotated or un-rotated
/// keys, and merged entries. Slots are those of LaneStorage. Not thread-safe, except that threads may change entries of
/// different heads.
class LayerLanes {
 public:
  const LaneShape& shape() const { return contents_.storage.shape(); }

  /// Number of entries with vectors of their own.
  int length(int head) const { return contents_.storage.length(head); }
  /// Number of entries that attention sees, including merged ones.
  int entries(int head) const { return length(head) + merged_entries(head).count(); }
  std::int32_t position(int head, int slot) const { return *entry(head, slot).position; }
  /// Key of an entry as stored, [d] f32.
  void key(int head, int slot, std::span<float> out) const;
  /// Value of an entry, [d] f32.
  void value(int head, int slot, std::span<float> out) const;
  float& state(int head, int column, int slot) { return *entry(head, slot).column(column); }
  float state(int head, int column, int slot) const { return *entry(head, slot).column(column); }
  /// Calls each(LaneSpan) for all runs of a lane, in slot order. For loops over all entries, for which position() and
  /// state() are too slow.
  template <class Each>
  void for_each_span(int head, const Each& each);
  /// Runs of a range in slot order, followed by their merged entries.
  void runs(int head, const AttendRange& range, std::vector<LaneRun>& out) const;

  /// Removes an entry and its merged entries; the lane's last entry moves into its slot.
  void remove(int head, int slot);
  /// Replaces the vectors of an entry, [d] each. REQUIRES: un-rotated keys.
  void overwrite(int head, int slot, std::span<const float> key, std::span<const float> value);
  /// Adds a vector [d] to the values of some entries, which are encoded again.
  void add_to_values(int head, std::span<const int> slots, std::span<const float> addend);

  /// True if the lane's keys are un-rotated (LaneShape::unrotates).
  bool is_unrotated(int head) const { return contents_.unrotated[head] != 0; }
  /// Un-rotates all keys of a lane. Eviction does it automatically. REQUIRES: LaneShape::unrotates.
  void unrotate(int head);

  MergedEntries& merged_entries(int head) { return contents_.merged_entries[head]; }
  const MergedEntries& merged_entries(int head) const { return contents_.merged_entries[head]; }
  /// Turns an entry and its merged entries into merged entries of the one in slot `centre`; their scales are multiplied
  /// by `scale`. The lane's last entry moves into the free slot. REQUIRES: GrowingLanes::reserve_merged_entries(),
  /// un-rotated keys.
  void merge_into(int head, int slot, int centre, float scale);
  /// Removes a merged entry.
  void remove_merged_entry(int head, int index);

  Summaries& summaries() { return summaries_; }
  const Summaries& summaries() const { return summaries_; }

  /// The raw entries, for writing them elsewhere.
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
  /// Ranks all entries of a lane, including merged ones. REQUIRES: has_ranks().
  void rank(int head);
  /// Lowers the ranks of all entries after an evicted one.
  void close_ranks(int head, std::int32_t evicted);
  /// Moves the lane's last entry into a free slot.
  void fill_slot(int head, int slot);
  /// Adds the merged entries of the rows in `out` from index `first_run` on.
  void add_merged_entries(int head, std::size_t first_run, std::vector<LaneRun>& out) const;

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

/// Slots of a lane with entries before a position. REQUIRES: these come first.
int slots_before(const LayerLanes& lanes, int head, std::int32_t position);

}  // namespace winnow::cache
