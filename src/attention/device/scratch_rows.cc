// SPDX-License-Identifier: Apache-2.0
#include "attention/device/scratch_rows.h"

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::attention::device {

using winnow::device::StoredRun;

ScratchRows::ScratchRows(const cache::LayerScratch& scratch, winnow::device::Device& device)
    : device_(device),
      values_(scratch.key_bytes()),
      memory_(device, bytes(scratch), "one layer's keys and values"),
      gathered_(device),
      work_(device) {}

ScratchRows& ScratchRows::of(const cache::LayerScratch& scratch, winnow::device::Device& device, int rows) {
  auto& copy = scratch.device_copy();
  if (copy == nullptr) copy.reset(new ScratchRows(scratch, device));
  auto& out = static_cast<ScratchRows&>(*copy);
  out.update(scratch, rows);
  return out;
}

std::size_t ScratchRows::place(const cache::LayerScratch& scratch, int head, int row) {
  return (as_size(head) * as_size(scratch.capacity()) + as_size(row)) *
         cache::row_bytes(scratch.type(), scratch.head_dim());
}

void ScratchRows::update(const cache::LayerScratch& scratch, int end) {
  const int first = rows();
  const int count = end - first;
  if (count <= 0) return;
  for (int head = 0; head < scratch.kv_heads(); ++head) {
    const auto keys = scratch.fetched_keys(head).slice(first, count);
    const auto values = scratch.fetched_values(head).slice(first, count);
    const std::size_t at = place(scratch, head, first);
    memory_.write(at, {keys.data, as_size(count) * keys.stride});
    memory_.write(values_ + at, {values.data, as_size(count) * values.stride});
  }
  set_rows(end);
}

std::vector<StoredRun> ScratchRows::runs(const cache::LayerScratch& scratch, const NewRows& rows, int first) const {
  std::vector<StoredRun> out;
  const auto add = [&](const float* from, std::size_t to, int head) {
    StoredRun run{};
    run.from = from + as_size(head) * as_size(scratch.head_dim());
    run.to = memory_.at(to + place(scratch, head, first));
    run.count = scratch.size() - first;
    run.from_step = scratch.kv_heads();
    out.push_back(run);
  };
  for (int head = 0; head < scratch.kv_heads(); ++head) {
    add(rows.keys, 0, head);
    add(rows.values, values_, head);
  }
  return out;
}

void ScratchRows::read(const cache::LayerScratch& scratch, int first) {
  const std::size_t bytes = as_size(rows() - first) * cache::row_bytes(scratch.type(), scratch.head_dim());
  for (int head = 0; head < scratch.kv_heads(); ++head) {
    const auto to = scratch.addresses(head, first);
    const std::size_t at = place(scratch, head, first);
    memory_.read(at, {to.keys, bytes});
    memory_.read(values_ + at, {to.values, bytes});
  }
}

bool ScratchRows::read(const cache::LayerScratch& scratch, std::span<const std::vector<std::int32_t>> rows) {
  return gathered_.copy(scratch, memory_.at(0), memory_.at(values_), rows);
}

bool ScratchRows::products(const cache::LayerScratch& scratch, const cache::RowProducts& what, std::span<double> out) {
  work_.clear();
  const auto vector = work_.add(what.vector.size_bytes());
  const auto results = work_.add(out.size_bytes());
  try {
    work_.reserve();
  } catch (const MemoryError&) {
    return false;
  }
  if (!what.vector.empty()) work_.write(vector, what.vector);
  const std::size_t rows = what.of == cache::RowProducts::Of::keys ? 0 : values_;
  const winnow::device::ProductsTask task{.rows = memory_.at(rows + place(scratch, what.head, 0)),
                                          .vector = what.vector.empty() ? nullptr : work_.at<float>(vector),
                                          .out = work_.at<double>(results),
                                          .element = static_cast<winnow::device::Element>(scratch.type()),
                                          .count = static_cast<std::int32_t>(out.size()),
                                          .dim = scratch.head_dim()};
  if (device_.queue(&winnow::device::Kernels::products, task) != nullptr) return false;
  work_.read(results, out);
  return true;
}

}  // namespace winnow::attention::device
