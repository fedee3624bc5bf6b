// SPDX-License-Identifier: Apache-2.0
#include "cache/lane_storage.h"

#include <cstring>
#include <numeric>

#include "cache/element.h"

namespace winnow::cache {

namespace {

Buffer copy_of(MemoryAccount& account, const Buffer& from, const char* purpose) {
  Buffer to(account, from.size(), purpose);
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return to;
}

}  // namespace

LaneStorage::LaneStorage(MemoryAccount& account, const LaneShape& shape)
    : account_(&account),
      shape_(shape),
      key_bytes_(row_bytes(shape.type.key, shape.head_dim)),
      value_bytes_(row_bytes(shape.type.value, shape.head_dim)),
      block_first_(as_size(shape.kv_heads) + 1, 0),
      length_(as_size(shape.kv_heads), 0) {}

LaneStorage LaneStorage::clone(MemoryAccount& account) const {
  LaneStorage out(account, shape_);
  out.block_ = copy_slab(account, block_);
  out.block_first_ = block_first_;
  out.length_ = length_;
  for (const auto& block : tail_) out.tail_.push_back(copy_slab(account, block));
  return out;
}

LaneStorage::Slab LaneStorage::make_slab(int entries) const {
  const auto n = as_size(entries);
  return {Buffer(*account_, n * key_bytes_, "kept keys"), Buffer(*account_, n * value_bytes_, "kept values"),
          Buffer(*account_, n * sizeof(std::int32_t), "positions of kept entries"),
          Buffer(*account_, shape_.has_ranks() ? n * sizeof(std::int32_t) : 0, "ranks of kept entries"),
          Buffer(*account_, n * as_size(shape_.state_columns) * sizeof(float), "state of kept entries")};
}

LaneStorage::Slab LaneStorage::copy_slab(MemoryAccount& account, const Slab& from) {
  return {copy_of(account, from.keys, "kept keys"), copy_of(account, from.values, "kept values"),
          copy_of(account, from.positions, "positions of kept entries"),
          copy_of(account, from.ranks, "ranks of kept entries"), copy_of(account, from.state, "state of kept entries")};
}

void LaneStorage::allocate(std::span<const int> lengths) {
  length_.assign(lengths.begin(), lengths.end());
  std::partial_sum(lengths.begin(), lengths.end(), block_first_.begin() + 1);
  copy_.reset();
  block_ = make_slab(block_first_.back());
}

void LaneStorage::reserve(int count) {
  int longest = 0;
  for (int head = 0; head < shape_.kv_heads; ++head)
    longest = std::max(longest, length(head) + count - block_slots(head));
  const auto wanted = as_size((longest + kTailBlock - 1) / kTailBlock);
  while (tail_.size() > wanted) tail_.pop_back();
  while (tail_.size() < wanted) tail_.push_back(make_slab(shape_.kv_heads * kTailBlock));
}

int LaneStorage::append(int head, int count) {
  const int slot = length_[head];
  length_[head] += count;
  return slot;
}

void LaneStorage::remove(int head, int slot) {
  const int last = --length_[head];
  if (slot != last) copy(entry(head, last), head, slot);
}

int LaneStorage::run(int head, int slot, int end) const {
  const int in_block = block_slots(head);
  const int together = slot < in_block ? in_block - slot : kTailBlock - (slot - in_block) % kTailBlock;
  return std::min(together, end - slot);
}

void LaneStorage::copy(const StoredEntry& from, int head, int slot) {
  const StoredEntry to = entry(head, slot);
  const StoredVectors vectors = change(head, slot);
  std::memcpy(vectors.key, from.key, key_bytes_);
  std::memcpy(vectors.value, from.value, value_bytes_);
  *to.position = *from.position;
  if (to.rank != nullptr) *to.rank = *from.rank;
  for (int c = 0; c < shape_.state_columns; ++c) *to.column(c) = *from.column(c);
}

}  // namespace winnow::cache
