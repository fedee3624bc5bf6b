// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_stream.h"
#include "base/memory.h"
#include "base/rope.h"
#include "cache/growing_lanes.h"
#include "cache/keep_plan.h"
#include "cache/lanes_file.h"
#include "policy/plan.h"

namespace winnow::policy {

/// Shape of the lanes that a method fills in a layer. `rope` outlives them.
cache::LaneShape lane_shape(const Method& method, const KvType& type, const attention::Shape& shape, const Rope& rope);

/// One layer of one sequence: its lanes, and the method's state while tokens are decoded. It begins empty, is filled
/// once (commit() or load()), and then takes one token after the other (reserve(), enter()).
class SequenceLayer {
 public:
  /// `terms`: of the prompt that will fill it. `budget`: this layer's share; its mean limits the growth of a lane if
  /// the whole prompt fits. `method` outlives it.
  SequenceLayer(MemoryAccount& account, const Method& method, const cache::LaneShape& shape, const Terms& terms,
                LayerBudget budget);
  /// A copy with memory of its own.
  SequenceLayer clone(MemoryAccount& account) const;

  /// Stores the entries that `plan` keeps of the prompt in `view.scratch`. REQUIRES: it is empty. Throws MemoryError.
  void commit(const cache::KeepPlan& plan, const LayerView& view);

  /// Replaces the entries of tokens from `position` on by those of another layer of the same method. Throws
  /// MemoryError.
  void put_from(std::int32_t position, SequenceLayer&& other);

  /// Appends the entries of another layer of the same method, which has kept all of the next tokens. REQUIRES:
  /// reserve().
  void append(SequenceLayer&& other);

  /// Reserves memory for a step of `count` tokens. Throws MemoryError.
  void reserve(int count);
  /// Stores the key and value, [d] each, of a step's first token in one head's lane: in the slot of the entry that the
  /// method evicts, or after the others. Returns the slot. Threads may do this for different heads. REQUIRES:
  /// reserve().
  int enter(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// The same for the other tokens of a step. They evict nothing yet, because earlier tokens still have to read it.
  int follow(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
    return lanes_.append(head, position, key, value);
  }
  /// Ends a step of several tokens: surplus tokens of a lane move to the slots that they would have taken one by one.
  void end_step();

  /// Bytes that save() writes.
  std::size_t saved_bytes() const { return cache::saved_bytes(lanes_); }
  void save(ByteSink& to) const { cache::save(lanes_, to); }
  /// Reads the output of save(). `seen`: tokens seen by then; `limit`: the result of limit(). REQUIRES: it is empty.
  /// Throws InputError, MemoryError.
  void load(ByteCursor& from, int seen, std::vector<int> limit);

  const Method& method() const { return *method_; }
  cache::GrowingLanes& lanes() { return lanes_; }
  const cache::GrowingLanes& lanes() const { return lanes_; }
  const Terms& terms() const { return terms_; }
  const LayerBudget& budget() const { return budget_; }
  /// [H_kv]: the most entries of a lane after a step of a method that evicts at every step.
  std::span<const int> limit() const { return limit_; }
  /// Length of the longest lane, merged entries included.
  int longest_lane() const;

 private:
  SequenceLayer(const SequenceLayer& other, MemoryAccount& account);

  void summarize();
  /// [H_kv]: number of blocks of lanes that are `count` entries longer.
  std::vector<int> summary_blocks(int count) const;
  /// The most entries that a lane can gain in `count` more tokens.
  int growth(int count) const;

  const Method* method_;
  cache::GrowingLanes lanes_;
  Terms terms_;
  LayerBudget budget_;
  std::vector<int> limit_;
};

}  // namespace winnow::policy
