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

/// The shape of the lanes that a method fills in a layer. `rope` outlives them.
cache::LaneShape lane_shape(const Method& method, const KvType& type, const attention::Shape& shape, const Rope& rope);

/// One layer of one sequence: the lanes, and what the method goes by while tokens are decoded. It begins empty, is
/// filled once (commit() or load()), and then takes one token after the other (reserve(), enter()).
class SequenceLayer {
 public:
  /// `terms` are those of the prompt that will fill it. `budget` is this layer's share; its mean is the most that a
  /// lane grows to when the whole prompt fits. `method` outlives it.
  SequenceLayer(MemoryAccount& account, const Method& method, const cache::LaneShape& shape, const Terms& terms,
                LayerBudget budget);
  /// A copy with memory of its own.
  SequenceLayer clone(MemoryAccount& account) const;

  /// Keeps what `plan` says of the prompt in `view.scratch`. REQUIRES: it is empty. Throws MemoryError.
  void commit(const cache::KeepPlan& plan, const LayerView& view);

  /// Puts what another layer of the same method keeps, of tokens from `position` on, in the place of what is kept of
  /// them here. Throws MemoryError.
  void put_from(std::int32_t position, SequenceLayer&& other);

  /// Adds what another layer of the same method keeps of the tokens that come next: all of them. REQUIRES: reserve().
  void append(SequenceLayer&& other);

  /// Makes room for a step of `count` tokens. Throws MemoryError.
  void reserve(int count);
  /// The key and value of a step's first token, [d] each, enter one head's lane: in the place of the entry that the
  /// method evicts, or after the others. Threads may do this for different heads. REQUIRES: reserve().
  void enter(int head, std::int32_t position, std::span<const float> key, std::span<const float> value);
  /// The same for the other tokens of a step: they take no place, as those before them have still to read it.
  void follow(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
    lanes_.append(head, position, key, value);
  }
  /// A step of several tokens is over: those that a lane has too many take the places that each would have taken alone.
  void end_step();

  /// Bytes that save() writes.
  std::size_t saved_bytes() const { return cache::saved_bytes(lanes_); }
  void save(ByteSink& to) const { cache::save(lanes_, to); }
  /// Reads what save() has written; `seen` tokens had been seen. `limit` as limit() was. REQUIRES: it is empty. Throws
  /// InputError, MemoryError.
  void load(ByteCursor& from, int seen, std::vector<int> limit);

  const Method& method() const { return *method_; }
  cache::GrowingLanes& lanes() { return lanes_; }
  const cache::GrowingLanes& lanes() const { return lanes_; }
  const Terms& terms() const { return terms_; }
  const LayerBudget& budget() const { return budget_; }
  /// [H_kv] entries that a method which evicts at every step leaves in a lane.
  std::span<const int> limit() const { return limit_; }
  /// Entries of the longest lane, merged ones included.
  int longest_lane() const;

 private:
  SequenceLayer(const SequenceLayer& other, MemoryAccount& account);

  void summarize();
  /// [H_kv] blocks of lanes that are longer by `count`.
  std::vector<int> summary_blocks(int count) const;
  /// Entries by which lanes can still grow when `count` tokens come.
  int growth(int count) const;

  const Method* method_;
  cache::GrowingLanes lanes_;
  Terms terms_;
  LayerBudget budget_;
  std::vector<int> limit_;
};

}  // namespace winnow::policy
