// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/lane_rows.h"
#include "device/kernels.h"

namespace winnow::attention::device {

/// Reads of a step, cut into items for the kernel.
class DecodeItems {
 public:
  /// An item without the addresses of its arrays, which are offsets here.
  struct Item {
    winnow::device::DecodeItem task;
    std::optional<std::size_t> positions = {};  ///< in positions()
    std::optional<std::size_t> centres = {};    ///< in centres() and factors()
    int first = 0;                              ///< index of its first entry in the lane
    int room = 0;                               ///< entries by which it can grow
    const LaneRows* rows = nullptr;
  };
  /// A read whose probabilities are requested.
  struct Captured {
    float* to;  ///< [group][stride]
    int row, kv_head, first, count, stride;
  };

  void clear();
  /// Adds a read of entries that `rows` holds. REQUIRES: sorted by (row, kv_head).
  void add(const DecodeRead& read, const LaneRows& rows);

  std::span<const Item> items() const { return items_; }
  std::span<const std::int32_t> positions() const { return positions_; }
  std::span<const std::int32_t> centres() const { return centres_; }
  std::span<const float> factors() const { return factors_; }
  std::span<const Captured> captured() const { return captured_; }
  bool is_listed() const { return !positions_.empty() || !centres_.empty(); }
  /// Numbers of the first item of each (row, kv_head), and of all items, [rows * kv_heads + 1].
  std::vector<std::int32_t> first_items(int rows, int kv_heads) const;

 private:
  void add_rows(const DecodeRead& read, const LaneRows& rows);
  void add_merged_entries(const DecodeRead& read, const LaneRows& rows);
  /// Whether the last item can grow by a read's entries from `slot` on.
  bool continues(const DecodeRead& read, const LaneRows& rows, int slot) const;
  /// Adds an item without entries.
  Item& begin_item(const DecodeRead& read, const LaneRows& rows, int slot);

  std::vector<Item> items_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> centres_;
  std::vector<float> factors_;
  std::vector<Captured> captured_;
};

}  // namespace winnow::attention::device
