#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_stream.h"
#include "base/memory.h"
#include "base/rope.h"
#include "cache/element.h"
#include "cache/plan.h"
#include "cache/scratch.h"
#include "winnow/kv_type.h"

namespace winnow::cache {

/// What every lane of a sequence has in common.
struct LaneShape {
  int kv_heads = 0;
  int head_dim = 0;
  KvType type;
  int state_columns = 0;  ///< f32 values a method stores beside each entry
  /// Set: entries count as lying at their rank in the lane. As soon as something has left a lane its keys are stored un-rotated, and each
  /// is turned to its rank when it is read; until then rank and position agree. Outlives the lanes.
  const Rope* by_rank = nullptr;
  int summary_floats = 0;  ///< f32 values a method stores for each block of entries of a head
};

/// Bytes that one entry takes: key row, value row, position, rank, state.
std::size_t entry_bytes(const LaneShape& shape);

/// A contiguous stretch of one lane, as attention reads it.
struct LanePiece {
  Rows keys;
  Rows values;
  std::int64_t query_shift = 0;
  const std::int32_t* turns = nullptr;  ///< position that each key is turned to when it is read; null: keys are rotated
  std::int32_t turns_end = 0;           ///< all turns are below this
};

/// Consecutive slots of a lane whose positions and state lie together.
struct LaneStretch {
  int first = 0;  ///< slot
  std::span<const std::int32_t> positions;
  std::int32_t* ranks = nullptr;
  float* state = nullptr;      ///< column 0
  std::size_t state_step = 0;  ///< floats from one column to the next

  int count() const { return static_cast<int>(positions.size()); }
  std::span<float> column(int c) const { return {state + static_cast<std::size_t>(c) * state_step, positions.size()}; }
};

/// The kept entries of one layer of one sequence: one lane for each KV head, each with its own length. A lane is a block of exactly
/// as many entries as the prompt left, plus a tail of pages for the tokens that came after. Entries are addressed by slot: 0 … length-1,
/// block first; the order of slots means nothing, positions do. Not thread-safe, except that append() and replace() may run on different
/// heads at the same time.
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

  /// Makes sure that every head can take `count` more entries without allocating. Throws MemoryError.
  void reserve(int count);
  /// Adds an entry at the end of one lane: slot length(head). REQUIRES: reserve(). Its state starts at 0.
  void append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Overwrites one entry. Its state starts at 0.
  void replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Drops one entry; the lane's last entry moves into its slot. Pages that no head uses any more are freed, but for one to come.
  void remove(int head, int slot);

  /// One entry's value, [d] f32.
  void value(int head, int slot, std::span<float> out) const;
  /// Adds to one entry's value, [d]; encoded anew.
  void add_to_value(int head, int slot, std::span<const float> addend);

  int length(int head) const;
  /// Whether the lane's keys are un-rotated, to be turned to their ranks (LaneShape::by_rank).
  bool is_ranked(int head) const { return ranked_[static_cast<std::size_t>(head)] != 0; }
  std::int32_t position(int head, int slot) const;
  float& state(int head, int column, int slot);
  float state(int head, int column, int slot) const;

  /// Calls each(LaneStretch) over a whole lane, in slot order: for loops over all entries, which position() and state() are too slow for.
  template <class Each>
  void for_each_stretch(int head, const Each& each);

  /// What the method has stored for a block, [summary_floats]; blocks are the method's own.
  std::span<float> summary(int head, int block);
  std::span<const float> summary(int head, int block) const;
  /// Makes sure that there are summaries of `blocks` blocks of each head. Throws MemoryError.
  void reserve_summaries(int blocks);

  /// Un-rotates all keys of a lane and ranks them; done by itself when something leaves. REQUIRES: LaneShape::by_rank.
  void rank(int head);

  /// The stretches of slots [begin, end), in slot order, each contiguous in memory.
  void pieces(int head, const AttendRange& range, std::vector<LanePiece>& out) const;

  const LaneShape& shape() const { return shape_; }

  /// Lengths of the lanes that lie at the cursor, [H_kv], as save() has written them. Throws InputError.
  static std::vector<int> saved_lengths(ByteCursor& from, int kv_heads);
  /// Bytes that save() writes with summaries of `summaries` blocks.
  std::size_t saved_bytes(int summaries) const;
  /// Writes the lanes and the summaries of the first blocks: docs/file-formats.md. REQUIRES: those summaries are there.
  void save(ByteSink& to, int summaries) const;
  /// Reads what save() has written, to the end of `from`; the lanes are then what they were, slot by slot. `tokens` have been seen.
  /// REQUIRES: the lanes are empty. Throws InputError when the numbers do not add up, MemoryError before anything is allocated.
  void load(ByteCursor& from, int tokens, int summaries);

 private:
  /// Where the parts of one entry lie.
  struct Entry {
    std::byte* key;
    std::byte* value;
    std::int32_t* position;
    std::int32_t* rank;      ///< null without by_rank
    float* state;            ///< column 0
    std::size_t state_step;  ///< floats from one column to the next
  };
  /// Consecutive entries of all heads: the block (heads of different length) or a page (kPage each).
  struct Store {
    Buffer keys;
    Buffer values;
    Buffer positions;
    Buffer ranks;
    Buffer state;
    Entry entry(const LaneShape& shape, int first, int capacity, int index) const;
  };
  static Store make_store(MemoryAccount& account, const LaneShape& shape, int entries);
  static Store copy_store(MemoryAccount& account, const Store& from);

  Entry entry(int head, int slot) const;
  /// Slots from `slot` on whose entries lie together.
  int together(int head, int slot) const;
  int tail_pages() const;
  void commit_entry(int head, int slot, std::int32_t from, const KeepPlan& plan, const LayerScratch& scratch);
  void write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// Calls each(Entry, count) over a whole lane: entries that lie together from that one on.
  template <class Each>
  void for_each_run(int head, const Each& each) const;
  /// Allocates the lanes that a file describes.
  void load_extents(ByteCursor& from, int tokens, int summaries);
  /// Checks the positions of a lane and gives each entry its rank.
  void load_ranks(int head, int tokens, const ByteCursor& from);
  /// What is behind the entry in `slot` moves up one rank.
  void close_ranks(int head, int slot);

  MemoryAccount* account_;
  LaneShape shape_;
  Store block_;
  std::vector<int> block_first_;   ///< [H_kv + 1] where each head's entries begin in the block
  std::vector<char> ranked_;       ///< [H_kv]
  std::vector<int> length_;        ///< [H_kv] entries in use
  std::vector<Buffer> summaries_;  ///< each of kSummaries blocks of head 0, then head 1, …
  std::vector<Store> pages_;       ///< each kPage entries of head 0, then head 1, …
};

template <class Each>
void LayerLanes::for_each_stretch(int head, const Each& each) {
  const int all = length(head);
  for (int slot = 0; slot < all;) {
    const int count = std::min(together(head, slot), all - slot);
    const Entry at = entry(head, slot);
    each(LaneStretch{slot, {at.position, static_cast<std::size_t>(count)}, at.rank, at.state, at.state_step});
    slot += count;
  }
}

/// All lanes of one sequence, with an account of their own.
class LaneSet {
 public:
  LaneSet(const LaneShape& shape, int layers, MemoryAccount* parent);
  LaneSet clone(MemoryAccount* parent) const;

  LayerLanes& layer(int l) { return layers_[static_cast<std::size_t>(l)]; }
  const LayerLanes& layer(int l) const { return layers_[static_cast<std::size_t>(l)]; }
  int layers() const { return static_cast<int>(layers_.size()); }

  /// Bytes allocated for the lanes now.
  std::size_t bytes_held() const { return account_->held(); }

 private:
  std::unique_ptr<MemoryAccount> account_;  // stable address: buffers point to it
  std::vector<LayerLanes> layers_;
};

}  // namespace winnow::cache
