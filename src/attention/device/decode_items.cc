// SPDX-License-Identifier: Apache-2.0
#include "attention/device/decode_items.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::attention::device {

namespace {

/// Entries of an item: many items occupy a GPU, and each adds a state to merge.
constexpr int kItem = 256;
static_assert(kItem <= winnow::device::DecodeItem::kMost);

}  // namespace

void DecodeItems::clear() {
  items_.clear();
  positions_.clear();
  centres_.clear();
  factors_.clear();
  captured_.clear();
}

void DecodeItems::add(const DecodeRead& read, const LaneRows& rows) {
  if (read.run.centres == nullptr) {
    add_rows(read, rows);
  } else {
    add_merged_entries(read, rows);
  }
  if (read.probabilities == nullptr || read.run.entries() == 0) return;
  captured_.push_back(
      {read.probabilities, read.row, read.kv_head, read.run.first, read.run.entries(), read.probabilities_stride});
}

DecodeItems::Item& DecodeItems::begin_item(const DecodeRead& read, const LaneRows& rows, int slot) {
  const auto part = rows.at(read.kv_head, slot);
  Item item{.task = {.keys = part.keys,
                     .values = part.values,
                     .key_scales = part.key_scales,
                     .value_scales = part.value_scales,
                     .probabilities = nullptr,
                     .positions = nullptr,
                     .rows = nullptr,
                     .factors = nullptr,
                     .row = read.row,
                     .kv_head = read.kv_head,
                     .count = 0,
                     .stride = 0,
                     .first_row = 0,
                     .shift = static_cast<std::int32_t>(read.run.query_shift)},
            .first = slot,
            .room = std::min(part.count, kItem),
            .rows = &rows};
  return items_.emplace_back(item);
}

bool DecodeItems::continues(const DecodeRead& read, const LaneRows& rows, int slot) const {
  if (items_.empty()) return false;
  const Item& last = items_.back();
  return last.room > 0 && !last.centres && last.rows == &rows && last.task.row == read.row &&
         last.task.kv_head == read.kv_head && last.first + last.task.count == slot &&
         last.task.shift == read.run.query_shift && last.positions.has_value() == (read.run.rotate_to != nullptr);
}

/// Lanes have short runs in their tails. Runs that follow each other are read together.
void DecodeItems::add_rows(const DecodeRead& read, const LaneRows& rows) {
  const auto& run = read.run;
  for (int done = 0; done < run.keys.count;) {
    const int slot = run.first + done;
    if (!continues(read, rows, slot)) {
      auto& item = begin_item(read, rows, slot);
      if (run.rotate_to != nullptr) item.positions = positions_.size();
    }
    auto& item = items_.back();
    const int count = std::min(run.keys.count - done, item.room);
    if (run.rotate_to != nullptr)
      positions_.insert(positions_.end(), run.rotate_to + done, run.rotate_to + done + count);
    item.task.count += count;
    item.room -= count;
    done += count;
  }
}

void DecodeItems::add_merged_entries(const DecodeRead& read, const LaneRows& rows) {
  const auto& run = read.run;
  for (int done = 0; done < run.merged_entries; done += kItem) {
    const int end = std::min(done + kItem, run.merged_entries);
    auto& item = begin_item(read, rows, run.first_slot);
    item.first = run.first + done;
    item.room = 0;
    item.task.count = end - done;
    item.task.first_row = run.first_slot;
    item.centres = centres_.size();
    centres_.insert(centres_.end(), run.centres + done, run.centres + end);
    factors_.insert(factors_.end(), run.scales + done, run.scales + end);
    if (run.rotate_to == nullptr) continue;
    item.positions = positions_.size();
    positions_.insert(positions_.end(), run.rotate_to + done, run.rotate_to + end);
  }
}

std::vector<std::int32_t> DecodeItems::first_items(int rows, int kv_heads) const {
  std::vector<std::int32_t> out(as_size(rows) * as_size(kv_heads) + 1, 0);
  for (const auto& item : items_) ++out[as_size(item.task.row) * as_size(kv_heads) + as_size(item.task.kv_head) + 1];
  for (std::size_t i = 1; i < out.size(); ++i) out[i] += out[i - 1];
  return out;
}

}  // namespace winnow::attention::device
