// SPDX-License-Identifier: Apache-2.0
#include "cache/lanes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/as_size.h"

namespace winnow::cache {

namespace {

Buffer copy(MemoryAccount& account, const Buffer& from, const char* purpose) {
  Buffer to(account, from.size(), purpose);
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return to;
}

/// x = max(x, y), beside other threads that do the same.
void raise(std::int32_t& x, std::int32_t y) {
  const std::atomic_ref shared(x);
  std::int32_t seen = shared.load(std::memory_order_relaxed);
  while (seen < y && !shared.compare_exchange_weak(seen, y, std::memory_order_relaxed)) continue;
}

}  // namespace

ElementType LaneShape::summary_type() const {
  const bool quantized = type.key == ElementType::q8_0 || type.key == ElementType::q4_0;
  return quantized ? ElementType::f16 : type.key;
}

std::size_t summary_bytes(const LaneShape& shape) { return row_bytes(shape.summary_type(), shape.summary_size); }

std::size_t entry_bytes(const LaneShape& shape) {
  return row_bytes(shape.type.key, shape.head_dim) + row_bytes(shape.type.value, shape.head_dim) +
         (shape.has_ranks() ? 2 : 1) * sizeof(std::int32_t) + as_size(shape.state_columns) * sizeof(float) +
         static_cast<std::size_t>(
             std::ceil(shape.merged_entries * static_cast<double>(MergedEntries::bytes(shape.state_columns))));
}

LayerLanes::Store LayerLanes::make_store(MemoryAccount& account, const LaneShape& shape, int entries) {
  const auto n = as_size(entries);
  return {Buffer(account, n * row_bytes(shape.type.key, shape.head_dim), "kept keys"),
          Buffer(account, n * row_bytes(shape.type.value, shape.head_dim), "kept values"),
          Buffer(account, n * sizeof(std::int32_t), "positions of kept entries"),
          Buffer(account, shape.has_ranks() ? n * sizeof(std::int32_t) : 0, "ranks of kept entries"),
          Buffer(account, n * as_size(shape.state_columns) * sizeof(float), "state of kept entries")};
}

LayerLanes::Store LayerLanes::copy_store(MemoryAccount& account, const Store& from) {
  return {copy(account, from.keys, "kept keys"), copy(account, from.values, "kept values"),
          copy(account, from.positions, "positions of kept entries"),
          copy(account, from.ranks, "ranks of kept entries"), copy(account, from.state, "state of kept entries")};
}

LayerLanes::Entry LayerLanes::Store::entry(const Strides& strides, int first, int capacity, int index) const {
  // A store owns its memory; its constness is that of the lanes around it.
  const auto at = as_size(first + index);
  const auto integers = [at](const Buffer& buffer) {
    return buffer.empty() ? nullptr : const_cast<std::int32_t*>(buffer.as<std::int32_t>().data()) + at;
  };
  auto* const state_at = const_cast<float*>(state.as<float>().data());
  return {const_cast<std::byte*>(keys.data()) + at * strides.key,
          const_cast<std::byte*>(values.data()) + at * strides.value,
          integers(positions),
          integers(ranks),
          state_at == nullptr ? nullptr : state_at + static_cast<std::ptrdiff_t>(first) * strides.columns + index,
          as_size(capacity)};
}

LayerLanes::LayerLanes(MemoryAccount& account, const LaneShape& shape)
    : account_(&account),
      shape_(shape),
      strides_{row_bytes(shape.type.key, shape.head_dim), row_bytes(shape.type.value, shape.head_dim),
               shape.state_columns},
      block_first_(as_size(shape.kv_heads) + 1, 0),
      unrotated_(as_size(shape.kv_heads), 0),
      length_(as_size(shape.kv_heads), 0) {
  for (int head = 0; head < shape.kv_heads; ++head) merged_entries_.emplace_back(account, shape.state_columns);
}

LayerLanes LayerLanes::clone(MemoryAccount& account) const {
  LayerLanes out(account, shape_);
  out.block_ = copy_store(account, block_);
  out.block_first_ = block_first_;
  out.length_ = length_;
  out.unrotated_ = unrotated_;
  out.end_ = end_;
  for (std::size_t head = 0; head < merged_entries_.size(); ++head)
    out.merged_entries_[head] = merged_entries_[head].clone(account);
  for (const auto& page : pages_) out.pages_.push_back(copy_store(account, page));
  for (const auto& some : summaries_) out.summaries_.push_back(copy(account, some, "summaries of blocks"));
  return out;
}

void LayerLanes::reserve(int count) {
  int longest = 0;
  for (std::size_t head = 0; head < length_.size(); ++head) {
    longest = std::max(longest, length_[head] + count - (block_first_[head + 1] - block_first_[head]));
  }
  const auto wanted = as_size((longest + kPage - 1) / kPage);
  while (pages_.size() > wanted) pages_.pop_back();
  while (pages_.size() < wanted) pages_.push_back(make_store(*account_, shape_, shape_.kv_heads * kPage));
}

LayerLanes::Entry LayerLanes::entry(int head, int slot) const {
  const int first = block_first_[head];
  const int in_block = block_first_[as_size(head) + 1] - first;
  if (slot < in_block) return block_.entry(strides_, first, in_block, slot);
  const int tail = slot - in_block;
  return pages_[tail / kPage].entry(strides_, head * kPage, kPage, tail % kPage);
}

void LayerLanes::write(int head, int slot, std::int32_t position, std::span<const float> key,
                       std::span<const float> value) {
  const Entry to = entry(head, slot);
  if (is_unrotated(head)) {
    std::vector<float> unrotated(key.begin(), key.end());
    shape_.unrotates->shift(unrotated.data(), -static_cast<std::int64_t>(position));
    encode_row(shape_.type.key, unrotated, to.key);
  } else {
    encode_row(shape_.type.key, key, to.key);
  }
  encode_row(shape_.type.value, value, to.value);
  *to.position = position;
  if (to.rank != nullptr) *to.rank = entries(head) - 1;
  raise(end_, position + 1);
  for (int column = 0; column < shape_.state_columns; ++column) to.state[as_size(column) * to.state_step] = 0.0F;
}

void LayerLanes::append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const int slot = length_[head]++;
  write(head, slot, position, key, value);
}

void LayerLanes::replace(int head, int slot, std::int32_t position, std::span<const float> key,
                         std::span<const float> value) {
  if (shape_.unrotates != nullptr) unrotate(head);
  if (const auto* const rank = entry(head, slot).rank; rank != nullptr) close_ranks(head, *rank);
  write(head, slot, position, key, value);
}

void LayerLanes::remove(int head, int slot) {
  if (shape_.unrotates != nullptr) unrotate(head);
  for (auto some = merged_entries(head).of(slot); some.count() > 0; --some.end) remove_merged_entry(head, some.end - 1);
  if (const auto* const rank = entry(head, slot).rank; rank != nullptr) close_ranks(head, *rank);
  fill_slot(head, slot);
}

void LayerLanes::fill_slot(int head, int slot) {
  const int last = --length_[head];
  if (slot != last) {
    copy_entry(entry(head, last), entry(head, slot));
    merged_entries(head).move(last, slot);
  }
}

void LayerLanes::copy_entry(const Entry& from, const Entry& to) const {
  std::memcpy(to.key, from.key, strides_.key);
  std::memcpy(to.value, from.value, strides_.value);
  *to.position = *from.position;
  if (to.rank != nullptr) *to.rank = *from.rank;
  for (std::size_t column = 0; column < as_size(shape_.state_columns); ++column) {
    to.state[column * to.state_step] = from.state[column * from.state_step];
  }
}

void LayerLanes::reserve_merged_entries(int count) {
  for (auto& merged_entries : merged_entries_) merged_entries.reserve(count);
}

void LayerLanes::merge_into(int head, int slot, int centre, float scale) {
  auto& all = merged_entries(head);
  const auto own = all.of(slot);
  for (int i = own.first; i < own.end; ++i) all.scales()[i] *= scale;
  all.move(slot, centre);
  const Entry from = entry(head, slot);
  const auto index = as_size(all.add({centre, *from.position, scale}));
  if (from.rank != nullptr) all.ranks()[index] = *from.rank;
  for (int column = 0; column < shape_.state_columns; ++column) {
    all.column(column)[index] = from.state[as_size(column) * from.state_step];
  }
  fill_slot(head, slot);
}

void LayerLanes::remove_merged_entry(int head, int index) {
  auto& all = merged_entries(head);
  if (shape_.has_ranks()) close_ranks(head, all.ranks()[index]);
  all.erase({index, index + 1});
}

void LayerLanes::reserve_summaries(int blocks) {
  const auto bytes = as_size(kSummaries) * as_size(shape_.kv_heads) * summary_bytes(shape_);
  while (static_cast<int>(summaries_.size()) * kSummaries < blocks) {
    auto& some = summaries_.emplace_back(*account_, bytes, "summaries of blocks");
    std::fill_n(some.data(), bytes, std::byte{});  // a block that is never summarised is saved too
  }
}

std::byte* LayerLanes::summary(int head, int block) const {
  const auto index = as_size(head) * kSummaries + as_size(block % kSummaries);
  // The lanes own the memory; its constness is theirs.
  return const_cast<std::byte*>(summaries_[block / kSummaries].data()) + index * summary_bytes(shape_);
}

void LayerLanes::set_summary(int head, int block, std::span<const float> values) {
  encode_row(shape_.summary_type(), values, summary(head, block));
}

Rows LayerLanes::summaries(int head, int block, int end) const {
  const int count = std::min(end - block, kSummaries - block % kSummaries);
  return {summary(head, block), summary_bytes(shape_), count, shape_.summary_size, shape_.summary_type()};
}

void LayerLanes::overwrite(int head, int slot, std::span<const float> key, std::span<const float> value) {
  const Entry at = entry(head, slot);
  encode_row(shape_.type.key, key, at.key);
  encode_row(shape_.type.value, value, at.value);
}

void LayerLanes::key(int head, int slot, std::span<float> out) const {
  decode_row(shape_.type.key, entry(head, slot).key, out);
}

void LayerLanes::add_to_values(int head, std::span<const int> slots, std::span<const float> addend) {
  std::vector<float> value(addend.size());
  for (const int slot : slots) {
    std::byte* const at = entry(head, slot).value;
    decode_row(shape_.type.value, at, value);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += addend[i];
    encode_row(shape_.type.value, value, at);
  }
}

void LayerLanes::value(int head, int slot, std::span<float> out) const {
  decode_row(shape_.type.value, entry(head, slot).value, out);
}

int LayerLanes::length(int head) const { return length_[head]; }

std::int32_t LayerLanes::position(int head, int slot) const { return *entry(head, slot).position; }

float& LayerLanes::state(int head, int column, int slot) {
  const Entry at = entry(head, slot);
  return at.state[as_size(column) * at.state_step];
}

float LayerLanes::state(int head, int column, int slot) const {
  return const_cast<LayerLanes*>(this)->state(head, column, slot);
}

int LayerLanes::together(int head, int slot) const {
  const int in_block = block_first_[as_size(head) + 1] - block_first_[head];
  return slot < in_block ? in_block - slot : kPage - (slot - in_block) % kPage;
}

LaneSet::LaneSet(std::span<const LaneShape> shapes, MemoryAccount* parent)
    : account_(std::make_unique<MemoryAccount>(parent)) {
  layers_.reserve(shapes.size());
  for (const auto& shape : shapes) layers_.emplace_back(*account_, shape);
}

LaneSet LaneSet::clone(MemoryAccount* parent) const {
  LaneSet out({}, parent);
  for (const auto& layer : layers_) out.layers_.push_back(layer.clone(*out.account_));
  return out;
}

}  // namespace winnow::cache
