// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rope.h"
#include "cache/lanes.h"

namespace winnow::policy {

/// The entries of a lane by position, as the next query will see them.
class OrderedLane {
 public:
  /// `lanes` and `rope` outlive it. REQUIRES: no merged entries.
  OrderedLane(const cache::LayerLanes& lanes, int head, const Rope& rope);

  int size() const { return static_cast<int>(entries_.size()); }
  int slot(int i) const { return entries_[i].slot; }
  /// Position in the text.
  std::int32_t position(int i) const { return entries_[i].position; }
  /// Effective position: the rank if the lane uses ranks, else the position in the text.
  std::int64_t effective(int i) const { return ranked_ ? i : position(i); }
  /// Key of entry i, [d], rotated to its effective position.
  void key(int i, std::span<float> out) const;

 private:
  struct Entry {
    std::int32_t position;
    int slot;
  };

  const cache::LayerLanes& lanes_;
  int head_;
  const Rope& rope_;
  bool ranked_;
  std::vector<Entry> entries_;
};

}  // namespace winnow::policy
