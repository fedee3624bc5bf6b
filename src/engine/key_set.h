// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace winnow::engine {

/// A set of numbers that is cleared in constant time.
class KeySet {
 public:
  void clear() {
    ++epoch_;
    count_ = 0;
  }

  /// Returns false if the key was already in the set.
  bool insert(std::uint64_t key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = find(key);
    if (slot.epoch == epoch_) return false;
    slot = {key, epoch_};
    ++count_;
    return true;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint64_t epoch = 0;  ///< an older epoch: the slot is free
  };

  Slot& find(std::uint64_t key) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = ((key * kGolden) >> 32U) & mask;
    while (slots_[at].epoch == epoch_ && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    auto old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const auto& slot : old) {
      if (slot.epoch == epoch_) find(slot.key) = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::size_t count_ = 0;
  std::uint64_t epoch_ = 1;
};

}  // namespace winnow::engine
