// SPDX-License-Identifier: Apache-2.0
#include "attention/device/layer_step.h"

#include <algorithm>
#include <cstdlib>

#include "attention/device/store_task.h"
#include "base/as_size.h"

namespace winnow::attention::device {

namespace {

using winnow::device::DecodeItem;
using winnow::device::DecodeTask;
using winnow::device::Kernels;
using winnow::device::StoredRun;

/// Types of lanes for which there are kernels.
bool is_supported(const KvType& type) {
  if (type.key == type.value) return true;
  return type.key == ElementType::q8_0 && (type.value == ElementType::f16 || type.value == ElementType::q4_0);
}

bool rotates(const DecodeRead& read) { return read.run.query_shift != 0 || read.run.rotate_to != nullptr; }

}  // namespace

void StepArrays::clear() {
  staging.clear();
  work.clear();
}

void StepArrays::reserve() {
  staging.reserve();
  work.reserve();
}

bool LayerStep::supports(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads) {
  const auto is_lacking = [&](const DecodeRead& read) {
    if (read.run.storage == nullptr) return true;
    const auto& type = read.run.storage->shape().type;
    if (!is_supported(type) || type != reads.front().run.storage->shape().type) return true;  // one type per step
    return read.run.centres != nullptr && read.run.rotate_to == nullptr;
  };
  const bool rotated = std::ranges::any_of(reads, rotates);
  return KernelGate::takes_heads(shape.head_dim) && !reads.empty() && std::ranges::none_of(reads, is_lacking) &&
         (!rotated || rope.frequency.size() % winnow::device::kHeadUnit == 0);
}

void LayerStep::plan(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, int rows,
                     std::span<const EnteredRow> entered) {
  shape_ = shape;
  rows_ = rows;
  changed_.clear();
  cut(reads);
  for (const auto& row : entered) copy_of(*row.storage).leave_out(row.kv_head, row.slot);
  find_angles(rope, reads);
  stage();
  place_probabilities();
}

/// Cuts the reads into items, and extends the copies of their lanes.
void LayerStep::cut(std::span<const DecodeRead> reads) {
  copies_.clear();
  items_.clear();
  for (const auto& read : reads) {
    const auto is_its = [&](const LaneRows* copy) { return &copy->lanes() == read.run.storage; };
    auto found = std::find_if(copies_.rbegin(), copies_.rend(), is_its);
    if (found == copies_.rend()) {
      copies_.push_back(&LaneRows::of(*read.run.storage, context_->device, context_->copied));
      found = copies_.rbegin();
    }
    items_.add(read, **found);
  }
}

LaneRows& LayerStep::copy_of(const cache::LaneStorage& lanes) const {
  return **std::ranges::find_if(copies_, [&](const LaneRows* copy) { return &copy->lanes() == &lanes; });
}

void LayerStep::find_angles(const Rope& rope, std::span<const DecodeRead> reads) {
  std::int64_t end = 0;
  for (const auto& read : reads) {
    if (read.run.rotate_to != nullptr) end = std::max(end, std::int64_t{read.run.rotate_to_end});
    if (read.run.query_shift != 0) end = std::max(end, std::abs(read.run.query_shift) + 1);
  }
  angles_ = {};
  if (end == 0 && !items_.is_listed()) return;
  angles_ = context_->angles(rope, static_cast<std::int32_t>(std::max<std::int64_t>(end, 1)));
}

void LayerStep::stage() {
  auto& staging = arrays_->staging;
  staged_.sinks = staging.add(std::span(shape_.sink_logits));
  staged_.positions = staging.add(items_.positions());
  staged_.centres = staging.add(items_.centres());
  staged_.factors = staging.add(items_.factors());
  staged_.first_items = staging.add(std::span<const std::int32_t>(items_.first_items(rows_, shape_.kv_heads)));
  staged_.items = staging.add(items_.items().size() * sizeof(DecodeItem));
  for (auto* const copy : copies_) stage_changes(*copy);
  runs_ = staging.add(2 * changed_.size() * sizeof(StoredRun));
}

void LayerStep::stage_changes(LaneRows& copy) {
  const auto& lanes = copy.lanes();
  for (int head = 0; head < lanes.shape().kv_heads; ++head) {
    auto slots = copy.changed(head, lanes.length(head));
    while (!slots.empty()) {
      const auto part = copy.at(head, slots.front());
      const int end = slots.front() + part.count;
      const auto count = as_size(std::ranges::lower_bound(slots, end) - slots.begin());
      stage_changes(copy, head, slots.first(count), part);
      slots = slots.subspan(count);
    }
  }
  copy.set_copied();
}

void LayerStep::stage_changes(LaneRows& copy, int head, std::span<const int> slots, const LaneRows::Part& to) {
  auto& staging = arrays_->staging;
  const auto n = slots.size();
  const auto& keys = copy.key_planes();
  const auto& values = copy.value_planes();
  const Changed changed{.copy = &copy,
                        .head = head,
                        .first = slots.front(),
                        .to = to,
                        .count = static_cast<int>(n),
                        .to_rows = staging.add(n * sizeof(std::int32_t)),
                        .keys = staging.add(n * keys.elements()),
                        .key_scales = staging.add(n * keys.scales()),
                        .values = staging.add(n * values.elements()),
                        .value_scales = staging.add(n * values.scales())};
  for (std::size_t i = 0; i < n; ++i) {
    const auto entry = copy.lanes().entry(head, slots[i]);
    staging.host<std::int32_t>(changed.to_rows)[i] = slots[i] - slots.front();
    keys.split(entry.key, 1, staging.host<std::byte>(changed.keys) + i * keys.elements(),
               staging.host<std::byte>(changed.key_scales) + i * keys.scales());
    values.split(entry.value, 1, staging.host<std::byte>(changed.values) + i * values.elements(),
                 staging.host<std::byte>(changed.value_scales) + i * values.scales());
  }
  changed_.push_back(changed);
}

void LayerStep::forget() {
  for (const auto& changed : changed_) {
    const auto* const rows = arrays_->staging.host<std::int32_t>(changed.to_rows);
    for (int i = 0; i < changed.count; ++i) changed.copy->mark_changed(changed.head, changed.first + rows[i], 1);
  }
}

/// Adds arrays for the probabilities that are asked for, and the logarithms of the sums that they need.
void LayerStep::place_probabilities() {
  const auto group = as_size(shape_.group());
  width_.assign(as_size(rows_) * as_size(shape_.kv_heads), 0);
  for (const auto& captured : items_.captured()) {
    auto& width = width_[lane_of(captured.row, captured.kv_head)];
    width = std::max(width, captured.first + captured.count);
  }
  probabilities_.clear();
  for (const int width : width_) probabilities_.push_back(arrays_->work.add(group * as_size(width) * sizeof(float)));
  lse_ =
      arrays_->work.add(items_.captured().empty() ? 0 : as_size(rows_) * as_size(shape_.query_heads) * sizeof(float));
}

std::size_t LayerStep::partial_bytes() const {
  return items_.items().size() * as_size(shape_.group()) * as_size(shape_.head_dim + 2) * sizeof(float);
}

void LayerStep::address() {
  address_items();
  address_changes();
}

std::size_t LayerStep::lane_of(int row, int kv_head) const {
  return as_size(row) * as_size(shape_.kv_heads) + as_size(kv_head);
}

/// Fills in the items, whose arrays have addresses now.
void LayerStep::address_items() {
  auto& staging = arrays_->staging;
  auto* to = staging.host<DecodeItem>(staged_.items);
  for (const auto& item : items_.items()) {
    auto task = item.task;
    const auto lane = lane_of(task.row, task.kv_head);
    if (item.positions) task.positions = staging.at<std::int32_t>(staged_.positions) + *item.positions;
    if (item.centres) {
      task.rows = staging.at<std::int32_t>(staged_.centres) + *item.centres;
      task.factors = staging.at<float>(staged_.factors) + *item.centres;
    }
    task.stride = width_[lane];
    if (task.stride > 0) task.probabilities = arrays_->work.at<float>(probabilities_[lane]) + item.first;
    *to++ = task;
  }
}

/// Fills in the runs of changed entries.
void LayerStep::address_changes() {
  auto& staging = arrays_->staging;
  auto* const runs = staging.host<StoredRun>(runs_);
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    const auto& changed = changed_[i];
    StoredRun run{};
    run.to_rows = staging.at<std::int32_t>(changed.to_rows);
    run.count = changed.count;
    run.from = staging.at<std::byte>(changed.keys);
    run.from_scales = staging.at<std::byte>(changed.key_scales);
    run.to = changed.to.keys;
    run.to_scales = changed.to.key_scales;
    runs[i] = run;
    run.from = staging.at<std::byte>(changed.values);
    run.from_scales = staging.at<std::byte>(changed.value_scales);
    run.to = changed.to.values;
    run.to_scales = changed.to.value_scales;
    runs[changed_.size() + i] = run;
  }
}

bool LayerStep::store() const {
  if (changed_.empty()) return true;
  const auto most = std::ranges::max(changed_, {}, &Changed::count).count;
  const auto stored = [&](const RowPlanes& planes, std::size_t first) {
    const RunsOfRows rows{arrays_->staging.at<StoredRun>(runs_) + first, changed_.size(), most, shape_.head_dim};
    const auto task = store_task(rows, planes.element(), planes.element());
    return context_->gate.accepts(context_->device.queue(&Kernels::store, task));
  };
  return stored(any_copy().key_planes(), 0) && stored(any_copy().value_planes(), changed_.size());
}

bool LayerStep::decode(const float* q, float* out, float* partial) const {
  const auto& staging = arrays_->staging;
  const DecodeTask task{.q = q,
                        .out = out,
                        .lse = items_.captured().empty() ? nullptr : arrays_->work.at<float>(lse_),
                        .items = staging.at<DecodeItem>(staged_.items),
                        .first_item = staging.at<std::int32_t>(staged_.first_items),
                        .partial = partial,
                        .sinks = shape_.sink_logits.empty() ? nullptr : staging.at<float>(staged_.sinks),
                        .angles = angles_,
                        .listed = items_.is_listed() ? 1 : 0,
                        .key_element = any_copy().key_planes().element(),
                        .value_element = any_copy().value_planes().element(),
                        .item_count = static_cast<std::int32_t>(items_.items().size()),
                        .rows = rows_,
                        .heads = shape_.query_heads,
                        .kv_heads = shape_.kv_heads,
                        .dim = shape_.head_dim,
                        .scale = shape_.scale,
                        .cap = shape_.cap};
  return context_->gate.accepts(context_->device.queue(&Kernels::decode, task));
}

void LayerStep::deliver(const float* work) const {
  for (const auto& captured : items_.captured()) {
    const auto lane = lane_of(captured.row, captured.kv_head);
    const auto width = as_size(width_[lane]);
    const float* const first = work + probabilities_[lane] / sizeof(float) + captured.first;
    for (std::size_t g = 0; g < as_size(shape_.group()); ++g)
      std::copy_n(first + g * width, captured.count, captured.to + static_cast<std::ptrdiff_t>(g) * captured.stride);
  }
}

}  // namespace winnow::attention::device
