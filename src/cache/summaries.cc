// SPDX-License-Identifier: Apache-2.0
#include "cache/summaries.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::cache {

Summaries::Summaries(MemoryAccount& account, const LaneShape& shape)
    : account_(&account), shape_(shape), row_bytes_(summary_bytes(shape)) {}

Summaries Summaries::clone(MemoryAccount& account) const {
  Summaries out(account, shape_);
  out.reserve(static_cast<int>(memory_.size()) * kTogether);
  for (std::size_t i = 0; i < memory_.size(); ++i)
    std::copy_n(memory_[i].data(), memory_[i].size(), out.memory_[i].data());
  return out;
}

std::size_t Summaries::bytes(const LaneShape& shape, int blocks) {
  const int together = (blocks + kTogether - 1) / kTogether * kTogether;
  return as_size(together) * as_size(shape.kv_heads) * summary_bytes(shape);
}

void Summaries::reserve(int blocks) {
  const auto size = bytes(shape_, kTogether);
  while (static_cast<int>(memory_.size()) * kTogether < blocks) {
    auto& some = memory_.emplace_back(*account_, size, "summaries of blocks");
    std::fill_n(some.data(), size, std::byte{});  // a block that is never summarised is saved too
  }
}

std::size_t Summaries::offset(int head, int block) const {
  return (as_size(head) * kTogether + as_size(block % kTogether)) * row_bytes_;
}

std::span<std::byte> Summaries::bytes(int head, int block) {
  return {memory_[block / kTogether].data() + offset(head, block), row_bytes_};
}

std::span<const std::byte> Summaries::bytes(int head, int block) const {
  return {memory_[block / kTogether].data() + offset(head, block), row_bytes_};
}

void Summaries::set(int head, int block, std::span<const float> values) {
  encode_row(shape_.summary_type(), values, bytes(head, block).data());
}

Rows Summaries::rows(int head, int block, int end) const {
  const int count = std::min(end - block, kTogether - block % kTogether);
  return {bytes(head, block).data(), row_bytes_, count, shape_.summary_size, shape_.summary_type()};
}

}  // namespace winnow::cache
