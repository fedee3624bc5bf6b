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

  /// Notes that entries [slot, slot + count) of a lane change.
  void mark_changed(int head, int slot, int count) {
    auto& slots = changed_[as_size(head)];
    if (slots.size() + as_size(count) > slots.capacity()) unite(slots);  // so that they do not outgrow the lane
    for (int i = 0; i < count; ++i) slots.push_back(slot + i);
  }
  /// Slots below `length` that differ from the copy, ascending.
  std::span<const int> changed(int head, int length) {
    auto& slots = changed_[as_size(head)];
    unite(slots);
    slots.erase(std::ranges::lower_bound(slots, length), slots.end());
    return slots;
  }
  /// Notes that a changed entry will be copied by other means.
  void leave_out(int head, int slot) { std::erase(changed_[as_size(head)], slot); }
  /// Notes that all changes have been copied.
  void set_copied() {
    for (auto& slots : changed_) slots.clear();
  }

 private:
  static void unite(std::vector<int>& slots) {
    std::ranges::sort(slots);
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  }

  std::vector<std::vector<int>> changed_;  ///< [H_kv] slots, some more than once
};

}  // namespace winnow::cache
