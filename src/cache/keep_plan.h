// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace winnow::cache {

/// The entries that a layer keeps of a prompt. Policy makes the plan, the cache applies it; making it changes nothing.
struct KeepPlan {
  /// Kept rows of the layer's scratch for each KV head, ascending, distinct. Empty `heads`: all rows are kept.
  std::vector<std::vector<std::int32_t>> heads;
  /// Replacement values of kept entries if a method merges, [head][kept entry][d]; empty, as a whole or for a head: not
  /// replaced.
  std::vector<std::vector<float>> values;
  /// The same for keys, un-rotated. REQUIRES: lanes with un-rotated keys.
  std::vector<std::vector<float>> keys;
  /// A row of the scratch without kept vectors: it becomes a merged entry of the kept entry with index `centre`.
  struct Joined {
    std::int32_t row;
    std::int32_t centre;
    float scale;  ///< key length relative to the centre's
  };
  std::vector<std::vector<Joined>> merged_entries;  ///< [head], ascending by centre; empty: none
  /// Initial values of the per-entry state, [column][head][kept entries, then merged entries]; empty for methods
  /// without state.
  std::vector<std::vector<std::vector<float>>> state;

  bool keeps_all() const { return heads.empty(); }
  /// Bytes of memory of the plan.
  std::size_t bytes() const;
};

/// Range of a lane's slots that a query reads, and the rotation of the query before it (base/rope.h): 0 if keys and
/// query agree on positions.
struct AttendRange {
  /// Effective positions of un-rotated keys.
  enum class Keys : std::uint8_t {
    in_place,  ///< as in the lane (LaneShape::positions)
    at_zero,   ///< 0 for all keys, so that the query's position is its distance to each
  };

  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int64_t query_shift = 0;
  Keys keys = Keys::in_place;
};

/// Ranges that a head's query reads of its lane. Empty: the whole lane, without rotation.
using AttendPlan = std::vector<AttendRange>;

/// Adds slots [begin, end), without rotation, to a plan; extends its last range if that ends at `begin`.
inline void extend(AttendPlan& plan, std::int32_t begin, std::int32_t end) {
  if (!plan.empty() && plan.back().end == begin) {
    plan.back().end = end;
  } else {
    plan.push_back({begin, end, 0});
  }
}

}  // namespace winnow::cache
