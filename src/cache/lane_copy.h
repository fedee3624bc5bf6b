// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/as_size.h"

namespace winnow::cache {

/// A copy of the keys and values of a layer's lanes in another memory. Their storage owns it, and tells it which
/// entries change. Threads may change entries of different heads.
class LaneCopy {
 public:
  explicit LaneCopy(int kv_heads) : changed_(as_size(kv_heads)) {}
  virtual ~LaneCopy() = default;

  /// Entries [slot, slot + count) of a lane change.
  void changes(int head, int slot, int count) {
    for (int i = 0; i < count; ++i) changed_[as_size(head)].push_back(slot + i);
  }
  /// Slots below `length` that differ from the copy, ascending.
  std::span<const int> changed(int head, int length) {
    auto& slots = changed_[as_size(head)];
    std::ranges::sort(slots);
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    slots.erase(std::ranges::lower_bound(slots, length), slots.end());
    return slots;
  }
  /// All changed slots have been copied.
  void set_copied() {
    for (auto& slots : changed_) slots.clear();
  }

 private:
  std::vector<std::vector<int>> changed_;  ///< [H_kv] slots, some more than once
};

}  // namespace winnow::cache
