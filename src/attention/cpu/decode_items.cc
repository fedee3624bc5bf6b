// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/decode_items.h"

#include <algorithm>
#include <cstdint>

namespace winnow::attention::cpu {

namespace {

/// Number of merged entries in an item: limited in number, and in rows from the first one's centre to the last one's.
int stretch_of(const cache::LaneRun& run, int first, int end) {
  int count = std::min(kStretchKeys, end - first);
  const auto* const from = run.centres + first;
  while (from[count - 1] - from[0] >= kStretchKeys) --count;
  return count;
}

/// Row of a merged entry's centre.
int row_of(const cache::LaneRun& run, int merged_entry) { return run.centres[merged_entry] - run.first_slot; }

/// Index of the first merged entry from `first` on whose centre is at or after a row.
int merged_entry_of(const cache::LaneRun& run, int first, int row) {
  const auto* const from = run.centres + first;
  return static_cast<int>(std::lower_bound(from, run.centres + run.merged_entries, run.first_slot + row) - run.centres);
}

/// Numbers of rows and of their merged entries.
struct Both {
  int rows;
  int merged_entries;
};

/// Rows from `first` on, with all their merged entries from `merged_entry` on, that fit into an item. A row with too
/// many merged entries is alone, with the first of them.
Both both_of(const cache::LaneRun& run, int first, int merged_entry) {
  const int rows_left = run.keys.count - first;
  int fit = 0;  // merged entries that fit with their centres and all rows before
  int beyond = std::min(run.merged_entries - merged_entry, kStretchKeys) + 1;
  while (fit + 1 < beyond) {
    const int middle = (fit + beyond) / 2;
    const int rows = row_of(run, merged_entry + middle - 1) - first + 1;  // up to the last one's centre
    if (rows + middle <= kStretchKeys) {
      fit = middle;
    } else {
      beyond = middle;
    }
  }
  if (merged_entry + fit == run.merged_entries) return {std::min(rows_left, kStretchKeys - fit), fit};
  const int next = row_of(run, merged_entry + fit) - first;  // does not fit with all its merged entries
  if (next == 0) return {1, fit};
  const int whole = merged_entry_of(run, merged_entry, first + next) - merged_entry;
  return {std::min(next, kStretchKeys - whole), whole};
}

/// True if merged entries belong to a read's rows and can be read with them, so that keys and values are loaded once.
bool belong_together(const DecodeRead& merged_entries, const DecodeRead& rows) {
  const auto& f = merged_entries.run;
  const auto& r = rows.run;
  return f.centres != nullptr && r.centres == nullptr && r.rotate_to != nullptr && f.keys.data == r.keys.data &&
         f.keys.count == r.keys.count && f.query_shift == r.query_shift;
}

bool is_merged(const DecodeRead& read) { return read.run.centres != nullptr; }

void add_rows(const DecodeRead& rows, std::vector<DecodeItem>& items) {
  const int count = rows.run.keys.count;
  for (int first = 0; first < count; first += kStretchKeys)
    items.push_back({rows, first, std::min(kStretchKeys, count - first)});
}

void add_merged_entries(const DecodeRead& read, int first, int end, std::vector<DecodeItem>& items) {
  while (first < end) {
    DecodeItem item{read, 0, 0, read, first, stretch_of(read.run, first, end)};
    item.rows.probabilities = nullptr;
    items.push_back(item);
    first += item.merged_entries;
  }
}

void add_rows_with_merged(const DecodeRead& rows, const DecodeRead& merged, std::vector<DecodeItem>& items) {
  int first = 0;
  int merged_entry = 0;
  while (first < rows.run.keys.count) {
    const Both both = both_of(merged.run, first, merged_entry);
    items.push_back({rows, first, both.rows, merged, merged_entry, both.merged_entries});
    first += both.rows;
    merged_entry += both.merged_entries;
    // The rest of a row with too many merged entries for one item.
    const int end = merged_entry_of(merged.run, merged_entry, first);
    add_merged_entries(merged, merged_entry, end, items);
    merged_entry = end;
  }
}

void scale(const DecodeRead& read, int g, int first, int count, float factor) {
  if (read.probabilities == nullptr) return;
  float* const at = read.probabilities + static_cast<std::ptrdiff_t>(g) * read.probabilities_stride + first;
  for (int entry = 0; entry < count; ++entry) at[entry] *= factor;
}

}  // namespace

void DecodeItem::scale_probabilities(int g, float factor) const {
  scale(rows, g, first, own, factor);
  scale(merged, g, first_merged, merged_entries, factor);
}

void DecodeItem::describe(Stretch& stretch) const {
  const auto& run = rows.run;
  int first_row = first;
  int count = own;
  stretch.own = own;
  if (run.rotate_to != nullptr) stretch.rotate_to = run.rotate_to + first;
  if (rows.probabilities != nullptr) stretch.capture = rows.probabilities + first;
  stretch.capture_stride = rows.probabilities_stride;
  if (merged_entries > 0) {
    const auto& of_rows = merged.run;
    stretch.merged_entries = merged_entries;
    stretch.centres = of_rows.centres + first_merged;
    stretch.scales = of_rows.scales + first_merged;
    stretch.merged_rotate_to = of_rows.rotate_to + first_merged;
    if (own == 0) {
      first_row = stretch.centres[0] - of_rows.first_slot;
      count = stretch.centres[merged_entries - 1] - stretch.centres[0] + 1;
    }
    stretch.first_centre = of_rows.first_slot + first_row;
    if (merged.probabilities != nullptr) stretch.merged_capture = merged.probabilities + first_merged;
  }
  stretch.keys = run.keys.slice(first_row, count);
  stretch.values = run.values.slice(first_row, count);
}

void add_items(std::span<const DecodeRead> reads, std::vector<DecodeItem>& items) {
  if (std::none_of(reads.begin(), reads.end(), is_merged)) {
    for (const auto& read : reads) add_rows(read, items);
    return;
  }
  for (const auto& read : reads) {
    const bool merged = is_merged(read);
    const auto other = std::find_if(reads.begin(), reads.end(), [&](const DecodeRead& r) {
      return merged ? belong_together(read, r) : belong_together(r, read);
    });
    const bool alone = other == reads.end();
    if (merged && alone) add_merged_entries(read, 0, read.run.merged_entries, items);
    if (!merged && alone) add_rows(read, items);
    if (!merged && !alone) add_rows_with_merged(read, *other, items);
  }
}

}  // namespace winnow::attention::cpu
