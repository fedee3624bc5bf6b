// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rope.h"
#include "cache/lanes.h"

namespace winnow::policy {

/// A lane in the order of its positions, as the next query would see it.
class OrderedLane {
 public:
  /// `lanes` and `rope` outlive it. REQUIRES: no merged entries.
  OrderedLane(const cache::LayerLanes& lanes, int head, const Rope& rope);

  int size() const { return static_cast<int>(entries_.size()); }
  int slot(int i) const { return entries_[i].slot; }
  /// In the text.
  std::int32_t position(int i) const { return entries_[i].position; }
  /// Its effective position: the rank where the lane goes by ranks, else that in the text.
  std::int64_t effective(int i) const { return ranked_ ? i : position(i); }
  /// Key of an entry, [d], rotated to its effective position.
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
