// SPDX-License-Identifier: Apache-2.0
#include "cache/summaries.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"

namespace winnow::cache {

namespace {

Buffer copy_of(MemoryAccount& account, const Buffer& from) {
  if (from.empty()) return {};
  Buffer out(account, from.size(), "summaries of blocks");
  std::copy_n(from.data(), from.size(), out.data());
  return out;
}

}  // namespace

Summaries::Summaries(MemoryAccount& account, const LaneShape& shape)
    : account_(&account), shape_(shape), row_bytes_(summary_bytes(shape)), first_(as_size(shape.kv_heads) + 1) {}

Summaries Summaries::clone(MemoryAccount& account) const {
  Summaries out(account, shape_);
  out.first_ = first_;
  out.memory_ = copy_of(account, memory_);
  for (const auto& rows : tail_) out.tail_.push_back(copy_of(account, rows));
  return out;
}

/// Zeros, since blocks that are never summarised are saved, too.
Buffer Summaries::make(int blocks) const {
  if (blocks == 0) return {};
  Buffer out(*account_, as_size(blocks) * row_bytes_, "summaries of blocks");
  std::fill_n(out.data(), out.size(), std::byte{});
  return out;
}

void Summaries::allocate(std::span<const int> blocks) {
  std::vector<int> first(1);
  for (const int count : blocks) first.push_back(first.back() + count);
  memory_ = make(first.back());
  first_ = std::move(first);
  tail_.clear();
}

void Summaries::reserve(std::span<const int> blocks) {
  for (int head = 0; head < shape_.kv_heads; ++head) {
    while (blocks[as_size(head)] > first_blocks(head) + static_cast<int>(tail_.size()) * kTailRows)
      tail_.push_back(make(shape_.kv_heads * kTailRows));
  }
}

const std::byte* Summaries::at(int head, int block) const {
  const int later = block - first_blocks(head);
  if (later < 0) return memory_.data() + as_size(first_[head] + block) * row_bytes_;
  return tail_[as_size(later / kTailRows)].data() + as_size(head * kTailRows + later % kTailRows) * row_bytes_;
}

std::span<std::byte> Summaries::bytes(int head, int block) {
  return {const_cast<std::byte*>(at(head, block)), row_bytes_};
}

std::span<const std::byte> Summaries::bytes(int head, int block) const { return {at(head, block), row_bytes_}; }

void Summaries::set(int head, int block, std::span<const float> values) {
  encode_row(shape_.summary_type(), values, bytes(head, block).data());
}

Rows Summaries::rows(int head, int block, int end) const {
  const int later = block - first_blocks(head);
  const int together = later < 0 ? -later : kTailRows - later % kTailRows;
  return {at(head, block), row_bytes_, std::min(end - block, together), shape_.summary_size, shape_.summary_type()};
}

}  // namespace winnow::cache
