// SPDX-License-Identifier: Apache-2.0
#include "cache/merged_entries.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"

namespace winnow::cache {

namespace {

/// Memory grows and shrinks by this many entries; few, so that hardly any is unused.
constexpr int kTogether = 8;

}  // namespace

MergedEntries MergedEntries::clone(MemoryAccount& account) const {
  MergedEntries out(account, columns_);
  out.reserve(count_);
  out.count_ = count_;
  for (int a = 0; a < arrays(); ++a) std::copy_n(const_cast<MergedEntries*>(this)->array(a), count_, out.array(a));
  return out;
}

MergedEntries::Range MergedEntries::of(std::int32_t slot, std::int32_t slot_end) const {
  const auto all = slots();
  const auto first = std::lower_bound(all.begin(), all.end(), slot);
  return {static_cast<int>(first - all.begin()),
          static_cast<int>(std::lower_bound(first, all.end(), slot_end) - all.begin())};
}

void MergedEntries::reserve(int count) {
  const int capacity = (count_ + count + kTogether - 1) / kTogether * kTogether;
  if (capacity == capacity_) return;
  Buffer memory(*account_, as_size(capacity) * bytes(columns_), "entries that share vectors");
  for (int a = 0; a < arrays(); ++a) {
    std::copy_n(array(a), count_, memory.as<std::uint32_t>().data() + static_cast<std::ptrdiff_t>(a) * capacity);
  }
  memory_ = std::move(memory);
  capacity_ = capacity;
}

int MergedEntries::add(const MergedEntry& merged_entry) {
  const int at = of(merged_entry.slot).end;
  for (int a = 0; a < arrays(); ++a) std::copy_backward(array(a) + at, array(a) + count_, array(a) + count_ + 1);
  ++count_;
  const auto index = as_size(at);
  for (int a = 0; a < arrays(); ++a) array(a)[at] = 0;
  slots()[index] = merged_entry.slot;
  positions()[index] = merged_entry.position;
  scales()[index] = merged_entry.scale;
  return at;
}

void MergedEntries::erase(Range range) {
  for (int a = 0; a < arrays(); ++a) std::copy(array(a) + range.end, array(a) + count_, array(a) + range.first);
  count_ -= range.count();
}

void MergedEntries::move(std::int32_t from, std::int32_t to) {
  const Range some = of(from);
  const int behind = of(to).end;
  for (int a = 0; a < arrays(); ++a) {
    if (behind <= some.first) std::rotate(array(a) + behind, array(a) + some.first, array(a) + some.end);
    if (behind > some.first) std::rotate(array(a) + some.first, array(a) + some.end, array(a) + behind);
  }
  const int first = behind <= some.first ? behind : behind - some.count();
  std::fill_n(slots().begin() + first, some.count(), to);
}

}  // namespace winnow::cache
