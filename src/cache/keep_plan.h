// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace winnow::cache {

/// What one layer keeps of a prompt: policy makes it, the cache applies it. Making it changes nothing.
struct KeepPlan {
  /// Per KV head the kept rows of the layer's scratch, ascending, without repeats. Empty `heads`: everything stays.
  std::vector<std::vector<std::int32_t>> heads;
  /// What is stored as the values of kept entries where a method merges, [head][kept entry][d]; empty, as a whole or
  /// for a head: as they are.
  std::vector<std::vector<float>> values;
  /// The same for keys, which are un-rotated. REQUIRES: lanes whose keys are.
  std::vector<std::vector<float>> keys;
  /// A row of the scratch whose vectors are not kept: it becomes a merged entry of the kept entry number `centre`.
  struct Joined {
    std::int32_t row;
    std::int32_t centre;
    float scale;  ///< length of its key in units of the centre's
  };
  std::vector<std::vector<Joined>> merged_entries;  ///< [head], by centre, ascending; empty: none
  /// Initial values of the per-entry state, [column][head][kept entry, then merged entry]; empty for methods without
  /// state.
  std::vector<std::vector<std::vector<float>>> state;

  bool keeps_all() const { return heads.empty(); }
  /// Bytes of memory that it takes.
  std::size_t bytes() const;
};

/// Part of a lane that a query reads, by storage slot, and how far the query is rotated before it reads it
/// (base/rope.h): 0 means that keys and query agree on positions.
struct AttendRange {
  /// Effective positions of un-rotated keys.
  enum class Keys : std::uint8_t {
    in_place,  ///< those of the lane (LaneShape::positions)
    at_zero,   ///< 0 for all, so that the query's position is its distance from each of them
  };

  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int64_t query_shift = 0;
  Keys keys = Keys::in_place;
};

/// What one head's query reads of its lane. Empty: all of it, unrotated.
using AttendPlan = std::vector<AttendRange>;

/// Adds slots [begin, end), unrotated, to a plan: to its last range where they go on from it.
inline void extend(AttendPlan& plan, std::int32_t begin, std::int32_t end) {
  if (!plan.empty() && plan.back().end == begin) {
    plan.back().end = end;
  } else {
    plan.push_back({begin, end, 0});
  }
}

}  // namespace winnow::cache
