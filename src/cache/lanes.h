// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/byte_stream.h"
#include "base/memory.h"
#include "base/rope.h"
#include "cache/element.h"
#include "cache/keep_plan.h"
#include "cache/merged_entries.h"
#include "cache/scratch.h"
#include "winnow/kv_type.h"

namespace winnow::cache {

/// Where entries whose keys are un-rotated count as lying.
enum class Lying : std::uint8_t {
  at_rank,      ///< at their rank among all entries of the lane
  at_position,  ///< where they stood in the text
};

/// What every lane of a layer has in common.
struct LaneShape {
  int kv_heads = 0;
  int head_dim = 0;
  KvType type;
  int state_columns = 0;  ///< f32 values a method stores beside each entry
  /// Set: as soon as something has left a lane its keys are stored un-rotated, and each is rotated to where it counts
  /// as lying when it is read. Until then it lies where it stood in the text, and keys are rotated to there. Outlives
  /// the lanes.
  const Rope* unrotates = nullptr;
  Lying lying = Lying::at_rank;
  int summary_size = 0;       ///< values a method stores for each block of entries of a head
  double merged_entries = 0;  ///< entries without vectors of their own, at most, for each that has them

  bool has_ranks() const { return unrotates != nullptr && lying == Lying::at_rank; }
  /// Type of what is stored for blocks: the keys' own, f16 where theirs is quantized.
  ElementType summary_type() const;
};

/// Bytes that one entry takes: key row, value row, position, rank, state, and its share of the merged entries.
std::size_t entry_bytes(const LaneShape& shape);

/// Bytes that a method's summary of one block of one head takes.
std::size_t summary_bytes(const LaneShape& shape);

/// Some entries of one lane, as attention reads them: rows that lie together, or the merged entries of such rows.
struct LanePiece {
  Rows keys;
  Rows values;
  std::int64_t query_shift = 0;
  const std::int32_t* rotate_to =
      nullptr;  ///< position that each entry's key is rotated to when it is read; null: keys are rotated
  std::int32_t rotate_to_end = 0;  ///< all turns are below this
  int first = 0;                   ///< number of the first entry in its lane: slots, then merged entries
  /// Set: the entries are not the rows but these merged entries of them.
  const std::int32_t* centres = nullptr;  ///< slots, ascending
  const float* scales = nullptr;
  std::int32_t first_slot = 0;  ///< of row 0
  int merged_entries = 0;

  int entries() const { return centres == nullptr ? keys.count : merged_entries; }
};

/// Consecutive slots of a lane whose positions and state lie together.
struct LaneSpan {
  int first = 0;  ///< slot
  std::span<const std::int32_t> positions;
  std::int32_t* ranks = nullptr;
  float* state = nullptr;      ///< column 0
  std::size_t state_step = 0;  ///< floats from one column to the next

  int count() const { return static_cast<int>(positions.size()); }
  std::span<float> column(int c) const { return {state + as_size(c) * state_step, positions.size()}; }
};

/// The kept entries of one layer of one sequence: one lane for each KV head, each with its own length. A lane is a
/// block of exactly as many entries as the prompt left, plus a tail of pages for the tokens that came after. Entries
/// are addressed by slot: 0 … length-1, block first; the order of slots means nothing, positions do. Not thread-safe,
/// except that what changes one head's entries may run beside what changes another's; reserve…() and what names no head
/// may not.
class LayerLanes {
 public:
  /// Tokens of one tail page.
  static constexpr int kPage = 32;
  /// Blocks whose summaries are allocated together.
  static constexpr int kSummaries = 64;

  LayerLanes(MemoryAccount& account, const LaneShape& shape);
  /// A copy with memory of its own.
  LayerLanes clone(MemoryAccount& account) const;

  /// Encodes what `plan` keeps of the scratch. REQUIRES: the lanes are empty. Throws MemoryError.
  void commit(const KeepPlan& plan, const LayerScratch& scratch);

  /// Slots of a lane whose entries stand before a position. REQUIRES: the others come after them.
  int slots_before(int head, std::int32_t position) const;
  /// Puts the entries of other lanes of the same shape in the place of those from a position on; all then lie in one
  /// block of exactly their number. REQUIRES: slots_before(). Throws MemoryError before anything has changed.
  void put_from(std::int32_t position, LayerLanes&& others);

  /// Makes sure that every head can take `count` more entries without allocating, and frees pages that are not needed
  /// for that. Throws MemoryError.
  void reserve(int count);
  /// Adds an entry at the end of one lane: slot length(head). REQUIRES: reserve(). Its state starts at 0.
  void append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Overwrites one entry. Its state starts at 0.
  void replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Drops one entry and its merged entries; the lane's last entry moves into its slot.
  void remove(int head, int slot);
  /// Makes sure that every head can take `count` more merged entries without allocating. Throws MemoryError.
  void reserve_merged_entries(int count);
  /// An entry gives up its vectors: it and its merged entries follow the entry in slot `centre`, with keys `scale`
  /// times as long as before in its units; the lane's last entry moves into its slot. REQUIRES: reserve_followers(),
  /// un-rotated keys.
  void merge_into(int head, int slot, int centre, float scale);
  /// Drops one merged entry.
  void remove_merged_entry(int head, int index);
  MergedEntries& merged_entries(int head) { return merged_entries_[head]; }
  const MergedEntries& merged_entries(int head) const { return merged_entries_[head]; }

  /// One entry's key as it is stored, [d] f32.
  void key(int head, int slot, std::span<float> out) const;
  /// One entry's value, [d] f32.
  void value(int head, int slot, std::span<float> out) const;
  /// Stores other vectors for an entry, [d] each. REQUIRES: un-rotated keys.
  void overwrite(int head, int slot, std::span<const float> key, std::span<const float> value);
  /// Adds to the values of some entries, [d]; encoded anew.
  void add_to_values(int head, std::span<const int> slots, std::span<const float> addend);

  /// Entries with vectors of their own.
  int length(int head) const;
  /// All entries that attention sees: those and their merged entries.
  int entries(int head) const { return length(head) + merged_entries(head).count(); }
  /// Whether the lane's keys are un-rotated (LaneShape::unrotates).
  bool is_unrotated(int head) const { return unrotated_[head] != 0; }
  std::int32_t position(int head, int slot) const;
  float& state(int head, int column, int slot);
  float state(int head, int column, int slot) const;

  /// Calls each(LaneSpan) over a whole lane, in slot order: for loops over all entries, which position() and state()
  /// are too slow for.
  template <class Each>
  void for_each_span(int head, const Each& each);

  /// Stores what a method makes of a block, [summary_size]; blocks are the method's own.
  void set_summary(int head, int block, std::span<const float> values);
  /// Summaries of blocks [block, end) that lie together, from the first on: at most those, at least one.
  Rows summaries(int head, int block, int end) const;
  /// Makes sure that there are summaries of `blocks` blocks of each head. Throws MemoryError.
  void reserve_summaries(int blocks);

  /// Un-rotates all keys of a lane; done by itself when something leaves. REQUIRES: LaneShape::unrotates.
  void unrotate(int head);

  /// The stretches of slots [begin, end), in slot order, each contiguous in memory, and then their merged entries.
  void pieces(int head, const AttendRange& range, std::vector<LanePiece>& out) const;

  const LaneShape& shape() const { return shape_; }

  /// Lengths of the lanes that lie at the cursor, [H_kv], as save() has written them. Throws InputError.
  static std::vector<int> saved_lengths(ByteCursor& from, int kv_heads);
  /// Bytes that save() writes with summaries of `summaries` blocks.
  std::size_t saved_bytes(int summaries) const;
  /// Writes the lanes and the summaries of the first blocks: docs/file-formats.md. REQUIRES: those summaries are there.
  void save(ByteSink& to, int summaries) const;
  /// Reads what save() has written, to the end of `from`; the lanes are then what they were, slot by slot. `tokens`
  /// have been seen. REQUIRES: the lanes are empty. Throws InputError when the numbers do not add up, MemoryError
  /// before anything is allocated.
  void load(ByteCursor& from, int tokens, int summaries);

 private:
  /// Where the parts of one entry lie.
  struct Entry {
    std::byte* key;
    std::byte* value;
    std::int32_t* position;
    std::int32_t* rank;      ///< null without has_ranks()
    float* state;            ///< column 0
    std::size_t state_step;  ///< floats from one column to the next
  };
  /// What one entry takes in a store.
  struct Strides {
    std::size_t key;    ///< bytes
    std::size_t value;  ///< bytes
    int columns;
  };
  /// Consecutive entries of all heads: the block (heads of different length) or a page (kPage each).
  struct Store {
    Buffer keys;
    Buffer values;
    Buffer positions;
    Buffer ranks;
    Buffer state;
    Entry entry(const Strides& strides, int first, int capacity, int index) const;
  };
  static Store make_store(MemoryAccount& account, const LaneShape& shape, int entries);
  static Store copy_store(MemoryAccount& account, const Store& from);

  Entry entry(int head, int slot) const;
  std::byte* summary(int head, int block) const;
  /// Slots from `slot` on whose entries lie together.
  int together(int head, int slot) const;
  void commit_entry(int head, int slot, std::int32_t from, const KeepPlan& plan, const LayerScratch& scratch);
  void commit_merged_entries(int head, const KeepPlan& plan, const LayerScratch& scratch);
  void write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Calls each(Entry, count) over a whole lane: entries that lie together from that one on.
  template <class Each>
  void for_each_run(int head, const Each& each) const;
  /// Allocates the lanes that a file describes; returns how many merged entries each has.
  std::vector<int> load_extents(ByteCursor& from, int tokens, int summaries);
  void load_merged_entries(ByteCursor& from, int head, int count);
  /// Checks the positions of a lane.
  void check_positions(int head, int tokens, const ByteCursor& from) const;
  /// Positions of all entries of a lane, merged entries last.
  std::vector<std::int32_t> all_positions(int head) const;
  /// Gives each entry of a lane its rank, merged entries included. REQUIRES: has_ranks().
  void rank(int head);
  /// What is after an entry that leaves moves up one rank.
  void close_ranks(int head, std::int32_t leaving);
  /// Adds the merged entries of the rows in pieces from `first_piece` on.
  void add_merged_entries(int head, std::size_t first_piece, std::vector<LanePiece>& out) const;
  void copy_entry(const Entry& from, const Entry& to) const;
  /// Adds the first slots of a lane of `from`, with their merged entries, after what a lane has. REQUIRES: room for
  /// them, un-rotated keys in both or in neither.
  void add_slots(int head, const LayerLanes& from, int slots);
  /// The lane's last entry moves into a slot that has become free.
  void fill_slot(int head, int slot);

  MemoryAccount* account_;
  LaneShape shape_;
  Strides strides_;
  Store block_;
  std::vector<int> block_first_;               ///< [H_kv + 1] where each head's entries begin in the block
  std::vector<char> unrotated_;                ///< [H_kv]
  std::vector<int> length_;                    ///< [H_kv] entries in use
  std::vector<MergedEntries> merged_entries_;  ///< [H_kv]
  std::int32_t end_ = 0;                       ///< all positions are below
  std::vector<Buffer> summaries_;              ///< each of kSummaries blocks of head 0, then head 1, …
  std::vector<Store> pages_;                   ///< each kPage entries of head 0, then head 1, …
};

template <class Each>
void LayerLanes::for_each_span(int head, const Each& each) {
  const int all = length(head);
  for (int slot = 0; slot < all;) {
    const int count = std::min(together(head, slot), all - slot);
    const Entry at = entry(head, slot);
    each(LaneSpan{slot, {at.position, as_size(count)}, at.rank, at.state, at.state_step});
    slot += count;
  }
}

/// All lanes of one sequence, with an account of their own.
class LaneSet {
 public:
  /// `shapes`: of each layer.
  LaneSet(std::span<const LaneShape> shapes, MemoryAccount* parent);
  LaneSet clone(MemoryAccount* parent) const;

  LayerLanes& layer(int l) { return layers_[l]; }
  const LayerLanes& layer(int l) const { return layers_[l]; }
  int layers() const { return static_cast<int>(layers_.size()); }

  /// Bytes allocated for the lanes now.
  std::size_t bytes_held() const { return account_->held(); }

 private:
  std::unique_ptr<MemoryAccount> account_;  // stable address: buffers point to it
  std::vector<LayerLanes> layers_;
};

}  // namespace winnow::cache
