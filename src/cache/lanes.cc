// SPDX-License-Identifier: Apache-2.0
#include "cache/lanes.h"

#include "base/as_size.h"
#include "cache/element.h"

namespace winnow::cache {

LaneContents::LaneContents(MemoryAccount& account, const LaneShape& shape)
    : storage(account, shape), unrotated(as_size(shape.kv_heads), 0) {
  for (int head = 0; head < shape.kv_heads; ++head) merged_entries.emplace_back(account, shape.state_columns);
}

LaneContents LaneContents::clone(MemoryAccount& account) const {
  LaneContents out(account, storage.shape());
  out.storage = storage.clone(account);
  out.unrotated = unrotated;
  out.end = end;
  for (std::size_t head = 0; head < merged_entries.size(); ++head)
    out.merged_entries[head] = merged_entries[head].clone(account);
  return out;
}

void LayerLanes::key(int head, int slot, std::span<float> out) const {
  decode_row(shape().type.key, entry(head, slot).key, out);
}

void LayerLanes::value(int head, int slot, std::span<float> out) const {
  decode_row(shape().type.value, entry(head, slot).value, out);
}

void LayerLanes::remove(int head, int slot) {
  if (shape().unrotates != nullptr) unrotate(head);
  const auto merged = merged_entries(head).of(slot);
  for (int i = merged.end - 1; i >= merged.first; --i) remove_merged_entry(head, i);
  if (const auto* const rank = entry(head, slot).rank; rank != nullptr) close_ranks(head, *rank);
  fill_slot(head, slot);
}

void LayerLanes::fill_slot(int head, int slot) {
  contents_.storage.remove(head, slot);
  if (const int last = length(head); slot != last) merged_entries(head).move(last, slot);
}

void LayerLanes::overwrite(int head, int slot, std::span<const float> key, std::span<const float> value) {
  const StoredVectors at = contents_.storage.change(head, slot);
  encode_row(shape().type.key, key, at.key);
  encode_row(shape().type.value, value, at.value);
}

void LayerLanes::add_to_values(int head, std::span<const int> slots, std::span<const float> addend) {
  std::vector<float> value(addend.size());
  for (const int slot : slots) {
    std::byte* const at = contents_.storage.change(head, slot).value;
    decode_row(shape().type.value, at, value);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += addend[i];
    encode_row(shape().type.value, value, at);
  }
}

void LayerLanes::merge_into(int head, int slot, int centre, float scale) {
  auto& all = merged_entries(head);
  const auto own = all.of(slot);
  for (int i = own.first; i < own.end; ++i) all.scales()[i] *= scale;
  all.move(slot, centre);
  const StoredEntry from = entry(head, slot);
  const auto index = as_size(all.add({centre, *from.position, scale}));
  if (from.rank != nullptr) all.ranks()[index] = *from.rank;
  for (int column = 0; column < shape().state_columns; ++column) all.column(column)[index] = *from.column(column);
  fill_slot(head, slot);
}

void LayerLanes::remove_merged_entry(int head, int index) {
  auto& all = merged_entries(head);
  if (shape().has_ranks()) close_ranks(head, all.ranks()[index]);
  all.erase({index, index + 1});
}

int slots_before(const LayerLanes& lanes, int head, std::int32_t position) {
  int slots = lanes.length(head);
  while (slots > 0 && lanes.position(head, slots - 1) >= position) --slots;
  return slots;
}

}  // namespace winnow::cache
