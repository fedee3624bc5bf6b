// SPDX-License-Identifier: Apache-2.0
#include "attention/device/lane_rows.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"

namespace winnow::attention::device {

namespace {

/// Changed entries that are left to the next step, which copies them together with its queries.
constexpr std::size_t kFew = 1024;

}  // namespace

void CopiedLanes::add(LaneRows* copy) {
  const std::scoped_lock lock(mutex_);
  copies_.insert(copy);
}

void CopiedLanes::remove(LaneRows* copy) {
  const std::scoped_lock lock(mutex_);
  copies_.erase(copy);
}

void CopiedLanes::free_all() {
  const std::scoped_lock lock(mutex_);
  for (auto* const copy : copies_) copy->free();
}

LaneRows& LaneRows::of(const cache::LaneStorage& lanes, winnow::device::Device& device,
                       const std::shared_ptr<CopiedLanes>& all) {
  auto& copy = lanes.device_copy();
  if (copy == nullptr || static_cast<LaneRows&>(*copy).is_freed_) copy.reset(new LaneRows(lanes, device, all));
  auto& rows = static_cast<LaneRows&>(*copy);
  rows.lanes_ = &lanes;
  rows.extend(device);
  rows.write_changed();
  return rows;
}

LaneRows::LaneRows(const cache::LaneStorage& lanes, winnow::device::Device& device, std::shared_ptr<CopiedLanes> all)
    : LaneCopy(lanes.shape().kv_heads),
      lanes_(&lanes),
      all_(std::move(all)),
      keys_(lanes.shape().type.key, lanes.shape().head_dim),
      values_(lanes.shape().type.value, lanes.shape().head_dim),
      first_(1, 0) {
  for (int head = 0; head < lanes.shape().kv_heads; ++head) {
    first_.push_back(first_.back() + lanes.block_slots(head));
    mark_changed(head, 0, lanes.length(head));
  }
  block_ = make_block(device, first_.back());
  all_->add(this);
}

LaneRows::~LaneRows() { all_->remove(this); }

void LaneRows::free() {
  is_freed_ = true;
  block_ = {};
  tail_.clear();
}

LaneRows::Block LaneRows::make_block(winnow::device::Device& device, int rows) const {
  using winnow::device::aligned;
  const auto n = as_size(rows);
  Block out{};
  out.key_scales = aligned(n * keys_.elements());
  out.values = out.key_scales + aligned(n * keys_.scales());
  out.value_scales = out.values + aligned(n * values_.elements());
  if (rows == 0) return out;
  const std::size_t bytes = out.value_scales + n * values_.scales();
  device.check_for_copy(bytes, "copies of kept entries, and room for a prompt,");
  out.memory = winnow::device::DeviceMemory(device, bytes, "kept entries");
  return out;
}

void LaneRows::extend(winnow::device::Device& device) {
  const int heads = lanes_->shape().kv_heads;
  int longest = 0;
  for (int head = 0; head < heads; ++head) longest = std::max(longest, lanes_->length(head) - block_slots(head));
  const auto wanted = as_size((longest + kTailBlock - 1) / kTailBlock);
  while (tail_.size() < wanted) tail_.push_back(make_block(device, heads * kTailBlock));
}

void LaneRows::write_changed() {
  const int heads = lanes_->shape().kv_heads;
  std::size_t count = 0;
  for (int head = 0; head < heads; ++head) count += changed(head, lanes_->length(head)).size();
  if (count <= kFew) return;
  for (int head = 0; head < heads; ++head) {
    const auto slots = changed(head, lanes_->length(head));
    for (std::size_t first = 0; first < slots.size();) {
      std::size_t end = first + 1;
      while (end < slots.size() && slots[end] == slots[end - 1] + 1) ++end;
      write(head, slots[first], slots[end - 1] + 1);
      first = end;
    }
  }
  set_copied();
}

void LaneRows::write(int head, int slot, int end) const {
  std::vector<std::byte> elements;
  std::vector<std::byte> scales;
  const auto copy = [&](const RowPlanes& planes, const std::byte* rows, const Place& to, std::size_t at,
                        std::size_t scales_at) {
    const auto row = as_size(to.row);
    elements.resize(as_size(to.count) * planes.elements());
    scales.resize(as_size(to.count) * planes.scales());
    planes.split(rows, to.count, elements.data(), scales.data());
    to.block->memory.write(at + row * planes.elements(), elements);
    if (!scales.empty()) to.block->memory.write(scales_at + row * planes.scales(), scales);
  };
  while (slot < end) {
    const auto from = lanes_->entry(head, slot);
    Place to = place_of(head, slot);
    to.count = std::min(to.count, lanes_->run(head, slot, end));
    copy(keys_, from.key, to, 0, to.block->key_scales);
    copy(values_, from.value, to, to.block->values, to.block->value_scales);
    slot += to.count;
  }
}

LaneRows::Place LaneRows::place_of(int head, int slot) const {
  const int in_block = block_slots(head);
  if (slot < in_block) return {&block_, first_[as_size(head)] + slot, in_block - slot};
  const int tail = slot - in_block;
  const int in_tail = tail % kTailBlock;
  return {&tail_[as_size(tail / kTailBlock)], head * kTailBlock + in_tail, kTailBlock - in_tail};
}

LaneRows::Part LaneRows::at(int head, int slot) const {
  const Place place = place_of(head, slot);
  const auto& [block, row, count] = place;
  const auto n = as_size(row);
  const auto scales = [&memory = block->memory, n](const RowPlanes& planes, std::size_t at) {
    return planes.scales() == 0 ? nullptr : memory.at(at + n * planes.scales());
  };
  return {block->memory.at(n * keys_.elements()), block->memory.at(block->values + n * values_.elements()),
          scales(keys_, block->key_scales), scales(values_, block->value_scales), count};
}

}  // namespace winnow::attention::device
