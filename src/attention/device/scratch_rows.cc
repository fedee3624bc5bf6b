// SPDX-License-Identifier: Apache-2.0
#include "attention/device/scratch_rows.h"

namespace winnow::attention::device {

ScratchRows::ScratchRows(const cache::LayerScratch& scratch, winnow::device::Device& device)
    : values_(scratch.key_bytes()), memory_(device, bytes(scratch), "one layer's keys and values") {}

const ScratchRows& ScratchRows::of(const cache::LayerScratch& scratch, winnow::device::Device& device) {
  auto& copy = scratch.device_copy();
  if (copy == nullptr) copy.reset(new ScratchRows(scratch, device));
  auto& rows = static_cast<ScratchRows&>(*copy);
  rows.update(scratch);
  return rows;
}

void ScratchRows::update(const cache::LayerScratch& scratch) {
  const int first = rows();
  const int count = scratch.size() - first;
  if (count <= 0) return;
  for (int head = 0; head < scratch.kv_heads(); ++head) {
    const auto keys = scratch.keys(head).slice(first, count);
    const auto values = scratch.values(head).slice(first, count);
    const std::size_t at = as_size(head * static_cast<std::ptrdiff_t>(scratch.capacity()) + first) * keys.stride;
    memory_.write(at, {keys.data, as_size(count) * keys.stride});
    memory_.write(values_ + at, {values.data, as_size(count) * values.stride});
  }
  set_rows(scratch.size());
}

}  // namespace winnow::attention::device
