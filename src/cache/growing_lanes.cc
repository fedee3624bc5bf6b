// SPDX-License-Identifier: Apache-2.0
#include "cache/growing_lanes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "cache/element.h"

namespace winnow::cache {

namespace {

/// Atomic x = max(x, y).
void raise(std::int32_t& x, std::int32_t y) {
  const std::atomic_ref shared(x);
  std::int32_t seen = shared.load(std::memory_order_relaxed);
  while (seen < y && !shared.compare_exchange_weak(seen, y, std::memory_order_relaxed)) continue;
}

/// Writes a stored row in another encoding.
void recode(const Rows& from, int index, ElementType type, std::byte* out) {
  if (from.type == type) {
    std::memcpy(out, from.row(index), row_bytes(type, from.dim));
    return;
  }
  std::vector<float> row(from.dim);
  decode_row(from.type, from.row(index), row);
  encode_row(type, row, out);
}

/// Encodes the kept entries of a prompt.
class Commit {
 public:
  Commit(MemoryAccount& account, const LaneShape& shape, const KeepPlan& plan, const LayerScratch& scratch);
  LaneContents finish() { return std::move(out_); }

 private:
  void allocate();
  void add_entry(int head, int slot);
  void add_key(int head, int slot, std::byte* to) const;
  void add_value(int head, int slot, std::byte* to) const;
  void add_merged_entries(int head);
  /// Row of the scratch that is kept in a slot.
  int row(int head, int slot) const { return plan_.keeps_all() ? slot : plan_.heads[head][slot]; }
  /// The method's replacement of an entry's key or value; empty: not replaced.
  std::span<const float> merged(const std::vector<std::vector<float>>& rows, int head, int slot) const;

  const LaneShape& shape_;
  const KeepPlan& plan_;
  const LayerScratch& scratch_;
  LaneContents out_;
};

Commit::Commit(MemoryAccount& account, const LaneShape& shape, const KeepPlan& plan, const LayerScratch& scratch)
    : shape_(shape), plan_(plan), scratch_(scratch), out_(account, shape) {
  allocate();
  scratch_.fetch(plan_.heads);
  for (int head = 0; head < shape_.kv_heads; ++head) {
    for (int slot = 0; slot < out_.storage.length(head); ++slot) add_entry(head, slot);
    if (!plan_.merged_entries.empty()) add_merged_entries(head);
  }
}

void Commit::allocate() {
  std::vector<int> lengths;
  for (int head = 0; head < shape_.kv_heads; ++head) {
    lengths.push_back(plan_.keeps_all() ? scratch_.size() : static_cast<int>(plan_.heads[head].size()));
    out_.unrotated[head] = shape_.unrotates != nullptr && lengths.back() < scratch_.size() ? 1 : 0;
  }
  out_.storage.allocate(lengths);
  out_.end = scratch_.positions().empty() ? 0 : scratch_.positions().back() + 1;
}

std::span<const float> Commit::merged(const std::vector<std::vector<float>>& rows, int head, int slot) const {
  if (rows.empty() || rows[head].empty()) return {};
  const auto dim = as_size(shape_.head_dim);
  return std::span(rows[head]).subspan(as_size(slot) * dim, dim);
}

void Commit::add_entry(int head, int slot) {
  const StoredEntry to = out_.storage.entry(head, slot);
  const StoredVectors vectors = out_.storage.change(head, slot);
  add_key(head, slot, vectors.key);
  add_value(head, slot, vectors.value);
  *to.position = scratch_.positions()[row(head, slot)];
  for (int c = 0; c < shape_.state_columns; ++c)
    *to.column(c) = plan_.state.empty() ? 0.0F : plan_.state[c][head][slot];
}

void Commit::add_key(int head, int slot, std::byte* to) const {
  const auto keys = scratch_.fetched_keys(head);
  const int from = row(head, slot);
  if (const auto stands_for = merged(plan_.keys, head, slot); !stands_for.empty()) {
    encode_row(shape_.type.key, stands_for, to);
  } else if (out_.unrotated[head] != 0) {
    std::vector<float> key(shape_.head_dim);
    decode_row(keys.type, keys.row(from), key);
    out_.store_unrotated(key, scratch_.positions()[from], to);
  } else {
    recode(keys, from, shape_.type.key, to);
  }
}

void Commit::add_value(int head, int slot, std::byte* to) const {
  if (const auto stands_for = merged(plan_.values, head, slot); !stands_for.empty()) {
    encode_row(shape_.type.value, stands_for, to);
  } else {
    recode(scratch_.fetched_values(head), row(head, slot), shape_.type.value, to);
  }
}

void Commit::add_merged_entries(int head) {
  auto& all = out_.merged_entries[head];
  all.reserve(static_cast<int>(plan_.merged_entries[head].size()));
  for (const auto& joined : plan_.merged_entries[head])
    all.add({joined.centre, scratch_.positions()[joined.row], joined.scale});
  if (plan_.state.empty()) return;
  for (int c = 0; c < shape_.state_columns; ++c) {
    const auto& of_entries = plan_.state[c][head];
    std::copy(of_entries.begin() + out_.storage.length(head), of_entries.end(), all.column(c).begin());
  }
}

/// Slots of a lane before position `before`, ordered by position.
std::vector<int> in_order(const LayerLanes& lanes, int head, std::int32_t before) {
  std::vector<int> slots;
  for (int slot = 0; slot < lanes.length(head); ++slot) {
    if (lanes.position(head, slot) < before) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end(),
            [&](int a, int b) { return lanes.position(head, a) < lanes.position(head, b); });
  return slots;
}

/// Adds the first `slots` slots of a lane, with their merged entries, to other lanes from slot `first` on. REQUIRES:
/// room for them; keys un-rotated in both or in neither.
void add_slots(const LayerLanes& from, int head, int slots, int first, LaneContents& to) {
  for (int slot = 0; slot < slots; ++slot) to.storage.copy(from.storage().entry(head, slot), head, first + slot);
  const auto& all = from.merged_entries(head);
  auto& into = to.merged_entries[head];
  const auto some = all.of(0, slots);
  for (auto i = as_size(some.first); i < as_size(some.end); ++i) {
    const auto index = as_size(into.add({first + all.slots()[i], all.positions()[i], all.scales()[i]}));
    for (int c = 0; c < from.shape().state_columns; ++c) into.column(c)[index] = all.column(c)[i];
  }
}

}  // namespace

GrowingLanes::GrowingLanes(MemoryAccount& account, const LaneShape& shape)
    : GrowingLanes(account, LaneContents(account, shape), Summaries(account, shape)) {}

GrowingLanes::GrowingLanes(MemoryAccount& account, LaneContents contents, Summaries summaries)
    : LayerLanes(std::move(contents), std::move(summaries)), account_(&account) {}

GrowingLanes GrowingLanes::clone(MemoryAccount& account) const {
  return {account, contents_.clone(account), summaries_.clone(account)};
}

void GrowingLanes::commit(const KeepPlan& plan, const LayerScratch& scratch) {
  assign(Commit(*account_, shape(), plan, scratch).finish());
}

void GrowingLanes::assign(LaneContents contents) {
  contents_ = std::move(contents);
  if (!shape().has_ranks()) return;
  for (int head = 0; head < shape().kv_heads; ++head) rank(head);
}

void GrowingLanes::put_from(std::int32_t position, GrowingLanes&& others) {
  LaneContents joined(*account_, shape());
  std::vector<int> before;
  std::vector<int> lengths;
  for (int head = 0; head < shape().kv_heads; ++head) {
    before.push_back(slots_before(*this, head, position));
    lengths.push_back(before.back() + others.length(head));
    joined.merged_entries[head].reserve(merged_entries(head).of(0, before.back()).count() +
                                        others.merged_entries(head).count());
  }
  joined.storage.allocate(lengths);
  for (int head = 0; head < shape().kv_heads; ++head) {
    if (is_unrotated(head) || others.is_unrotated(head)) {
      unrotate(head);
      others.unrotate(head);
    }
    joined.unrotated[head] = contents_.unrotated[head];
    add_slots(*this, head, before[head], 0, joined);
    add_slots(others, head, others.length(head), before[head], joined);
  }
  joined.end = std::max(contents_.end, others.contents_.end);
  assign(std::move(joined));
}

void GrowingLanes::append(GrowingLanes&& others) {
  for (int head = 0; head < shape().kv_heads; ++head) {
    if (is_unrotated(head)) others.unrotate(head);
    for (int slot = 0; slot < others.length(head); ++slot) {
      const int added = contents_.storage.append(head);
      contents_.storage.copy(others.entry(head, slot), head, added);
      if (auto* const rank = entry(head, added).rank; rank != nullptr) *rank = entries(head) - 1;
    }
  }
  contents_.end = std::max(contents_.end, others.contents_.end);
}

void GrowingLanes::put_last(std::int32_t position, GrowingLanes&& others, int most) {
  LaneContents joined(*account_, shape());
  std::vector<std::vector<StoredEntry>> entries;
  std::vector<int> lengths;
  for (int head = 0; head < shape().kv_heads; ++head) {
    auto& all = entries.emplace_back();
    for (const int slot : in_order(*this, head, position)) all.push_back(entry(head, slot));
    for (const int slot : in_order(others, head, others.contents_.end)) all.push_back(others.entry(head, slot));
    if (all.size() > as_size(most)) all.erase(all.begin(), all.end() - most);
    lengths.push_back(static_cast<int>(all.size()));
  }
  joined.storage.allocate(lengths);
  for (int head = 0; head < shape().kv_heads; ++head) {
    for (int slot = 0; slot < lengths[head]; ++slot) joined.storage.copy(entries[head][slot], head, slot);
  }
  joined.end = std::max(contents_.end, others.contents_.end);
  assign(std::move(joined));
}

void GrowingLanes::close_ring(int head, int slots) {
  int oldest = 0;
  for (int slot = 1; slot < slots; ++slot) {
    if (position(head, slot) < position(head, oldest)) oldest = slot;
  }
  for (int slot = slots; slot < length(head); ++slot) {
    contents_.storage.copy(entry(head, slot), head, oldest);
    oldest = (oldest + 1) % slots;
  }
  contents_.storage.cut(head, slots);
}

void GrowingLanes::reserve_merged_entries(int count) {
  for (auto& merged_entries : contents_.merged_entries) merged_entries.reserve(count);
}

int GrowingLanes::append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const int slot = contents_.storage.append(head);
  write(head, slot, position, key, value);
  return slot;
}

void GrowingLanes::replace(int head, int slot, std::int32_t position, std::span<const float> key,
                           std::span<const float> value) {
  if (shape().unrotates != nullptr) unrotate(head);
  if (const auto* const rank = entry(head, slot).rank; rank != nullptr) close_ranks(head, *rank);
  write(head, slot, position, key, value);
}

void GrowingLanes::write(int head, int slot, std::int32_t position, std::span<const float> key,
                         std::span<const float> value) {
  const StoredEntry to = entry(head, slot);
  *to.position = position;
  fill(head, slot, key, value);
  if (to.rank != nullptr) *to.rank = entries(head) - 1;
  raise(contents_.end, position + 1);
  for (int c = 0; c < shape().state_columns; ++c) *to.column(c) = 0.0F;
}

void GrowingLanes::fill(int head, int slot, std::span<const float> key, std::span<const float> value) {
  const StoredVectors to = contents_.storage.change(head, slot);
  if (is_unrotated(head)) {
    std::vector<float> unrotated(key.begin(), key.end());
    contents_.store_unrotated(unrotated, position(head, slot), to.key);
  } else {
    encode_row(shape().type.key, key, to.key);
  }
  encode_row(shape().type.value, value, to.value);
}

}  // namespace winnow::cache
