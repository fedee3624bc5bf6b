// SPDX-License-Identifier: Apache-2.0
#include "attention/device/lane_rows.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::attention::device {

namespace {

/// Bytes rounded up, so that the next array is aligned for every kernel.
std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kLine = 256;
  return (bytes + kLine - 1) / kLine * kLine;
}

std::size_t block_bytes(const RowPlanes& keys, const RowPlanes& values, std::size_t rows) {
  return aligned(rows * keys.elements()) + aligned(rows * keys.scales()) + aligned(rows * values.elements()) +
         rows * values.scales();
}

}  // namespace

LaneRows& LaneRows::of(const cache::LaneStorage& lanes, winnow::device::Device& device) {
  auto& copy = lanes.device_copy();
  if (copy == nullptr) copy.reset(new LaneRows(lanes, device));
  auto& rows = static_cast<LaneRows&>(*copy);
  rows.lanes_ = &lanes;
  rows.extend(device);
  return rows;
}

LaneRows::LaneRows(const cache::LaneStorage& lanes, winnow::device::Device& device)
    : LaneCopy(lanes.shape().kv_heads),
      lanes_(&lanes),
      keys_(lanes.shape().type.key, lanes.shape().head_dim),
      values_(lanes.shape().type.value, lanes.shape().head_dim),
      first_(1, 0) {
  const int heads = lanes.shape().kv_heads;
  for (int head = 0; head < heads; ++head) first_.push_back(first_.back() + lanes.block_slots(head));
  block_ = make_block(device, first_.back());
  for (int head = 0; head < heads; ++head) {
    upload(head);
    if (const int later = lanes.length(head) - block_slots(head); later > 0) changes(head, block_slots(head), later);
  }
}

LaneRows::Block LaneRows::make_block(winnow::device::Device& device, int rows) const {
  const auto n = as_size(rows);
  Block out{};
  out.key_scales = aligned(n * keys_.elements());
  out.values = out.key_scales + aligned(n * keys_.scales());
  out.value_scales = out.values + aligned(n * values_.elements());
  if (rows == 0) return out;
  const std::size_t bytes = block_bytes(keys_, values_, n);
  device.check_for_copy(bytes, "copies of kept entries, and room for a prompt,");
  out.memory = winnow::device::DeviceMemory(device, bytes, "kept entries");
  return out;
}

/// Copies the entries of a lane's initial block.
void LaneRows::upload(int head) {
  const int count = std::min(lanes_->length(head), block_slots(head));
  if (count == 0) return;
  const auto from = lanes_->entry(head, 0);
  const auto row = as_size(first_[as_size(head)]);
  std::vector<std::byte> elements;
  std::vector<std::byte> scales;
  const auto copy = [&](const RowPlanes& planes, const std::byte* rows, std::size_t at, std::size_t scales_at) {
    elements.resize(as_size(count) * planes.elements());
    scales.resize(as_size(count) * planes.scales());
    planes.split(rows, count, elements.data(), scales.data());
    block_.memory.write(at + row * planes.elements(), elements);
    if (!scales.empty()) block_.memory.write(scales_at + row * planes.scales(), scales);
  };
  copy(keys_, from.key, 0, block_.key_scales);
  copy(values_, from.value, block_.values, block_.value_scales);
}

void LaneRows::extend(winnow::device::Device& device) {
  const int heads = lanes_->shape().kv_heads;
  int longest = 0;
  for (int head = 0; head < heads; ++head) longest = std::max(longest, lanes_->length(head) - block_slots(head));
  const auto wanted = as_size((longest + kTailBlock - 1) / kTailBlock);
  while (tail_.size() < wanted) tail_.push_back(make_block(device, heads * kTailBlock));
}

LaneRows::Part LaneRows::part_of(const Block& block, int row, int count) const {
  const auto n = as_size(row);
  const auto scales = [&](const RowPlanes& planes, std::size_t at) {
    return planes.scales() == 0 ? nullptr : block.memory.at(at + n * planes.scales());
  };
  return {block.memory.at(n * keys_.elements()), block.memory.at(block.values + n * values_.elements()),
          scales(keys_, block.key_scales), scales(values_, block.value_scales), count};
}

LaneRows::Part LaneRows::at(int head, int slot) const {
  const int in_block = block_slots(head);
  if (slot < in_block) return part_of(block_, first_[as_size(head)] + slot, in_block - slot);
  const int tail = slot - in_block;
  const int in_tail = tail % kTailBlock;
  return part_of(tail_[as_size(tail / kTailBlock)], head * kTailBlock + in_tail, kTailBlock - in_tail);
}

}  // namespace winnow::attention::device
