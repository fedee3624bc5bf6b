// SPDX-License-Identifier: Apache-2.0
#include "attention/device/decode.h"

#include <algorithm>
#include <cstdlib>

#include "winnow/error.h"

namespace winnow::attention::device {

namespace {

using winnow::device::Angles;
using winnow::device::DecodeTask;
using winnow::device::Element;
using winnow::device::StoredRun;
using winnow::device::StoreTask;

Element element_of(const RowPlanes& planes) { return static_cast<Element>(planes.type()); }

/// Types of lanes for which there are kernels.
bool is_supported(const KvType& type) {
  if (type.key == type.value) return true;
  return type.key == ElementType::q8_0 && (type.value == ElementType::f16 || type.value == ElementType::q4_0);
}

bool rotates(const DecodeRead& read) { return read.run.query_shift != 0 || read.run.rotate_to != nullptr; }

}  // namespace

bool Decode::supports(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads) const {
  const auto is_lacking = [&](const DecodeRead& read) {
    if (read.run.storage == nullptr) return true;
    const auto& type = read.run.storage->shape().type;
    if (!is_supported(type) || type != reads.front().run.storage->shape().type) return true;  // one type per step
    return read.run.centres != nullptr && read.run.rotate_to == nullptr;
  };
  const bool rotated = std::ranges::any_of(reads, rotates);
  return shape.head_dim % winnow::device::kHeadUnit == 0 && shape.head_dim <= winnow::device::kMostHead &&
         !reads.empty() && std::ranges::none_of(reads, is_lacking) &&
         (!rotated || rope.frequency.size() % winnow::device::kHeadUnit == 0);
}

void Decode::begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
                   int rows) {
  step_ = {shape, out, rows};
  is_on_cpu_ = !gate_.is_open() || !supports(shape, rope, reads);
  if (!is_on_cpu_) {
    try {
      is_on_cpu_ = !queue(rope, reads, q);
    } catch (const MemoryError& error) {
      gate_.tell(error.what());
      is_on_cpu_ = true;
    }
  }
  if (is_on_cpu_) cpu_->begin(shape, rope, reads, q, out, rows);
}

/// Memory is allocated before anything is queued, so that changes of lanes are not lost if there is too little.
bool Decode::queue(const Rope& rope, std::span<const DecodeRead> reads, const float* q) {
  cut(reads);
  const Angles angles = angles_for(rope, reads);
  stage(q);
  place_results();
  address_items();
  address_changes();
  staging_.upload();
  if (!store() || !decode(angles)) {
    copied_->free_all();
    return false;
  }
  for (auto* const copy : copies_) copy->set_copied();
  return true;
}

/// Cuts the reads into items, and extends the copies of their lanes.
void Decode::cut(std::span<const DecodeRead> reads) {
  copies_.clear();
  items_.clear();
  for (const auto& read : reads) {
    const auto is_its = [&](const LaneRows* copy) { return &copy->lanes() == read.run.storage; };
    auto found = std::find_if(copies_.rbegin(), copies_.rend(), is_its);
    if (found == copies_.rend()) {
      copies_.push_back(&LaneRows::of(*read.run.storage, device_, copied_));
      found = copies_.rbegin();
    }
    items_.add(read, **found);
  }
}

/// Layers share a Rope, so there are few tables.
Angles Decode::angles_for(const Rope& rope, std::span<const DecodeRead> reads) {
  std::int64_t end = 0;
  for (const auto& read : reads) {
    if (read.run.rotate_to != nullptr) end = std::max(end, std::int64_t{read.run.rotate_to_end});
    if (read.run.query_shift != 0) end = std::max(end, std::abs(read.run.query_shift) + 1);
  }
  if (end == 0 && !items_.is_listed()) return {};
  const auto is_its = [&](const auto& table) { return &table->rope() == &rope; };
  auto found = std::ranges::find_if(angles_, is_its);
  if (found == angles_.end()) found = angles_.insert(angles_.end(), std::make_unique<AngleTable>(account_, rope));
  return (*found)->up_to(static_cast<std::int32_t>(std::max<std::int64_t>(end, 1)), device_);
}

void Decode::stage(const float* q) {
  staging_.clear();
  staged_.q = staging_.add(std::span(q, step_.elements()));
  staged_.sinks = staging_.add(std::span(step_.shape.sink_logits));
  staged_.positions = staging_.add(items_.positions());
  staged_.centres = staging_.add(items_.centres());
  staged_.factors = staging_.add(items_.factors());
  staged_.first_items =
      staging_.add(std::span<const std::int32_t>(items_.first_items(step_.rows, step_.shape.kv_heads)));
  staged_.items = staging_.add(items_.items().size() * sizeof(winnow::device::DecodeItem));
  changed_.clear();
  for (auto* const copy : copies_) stage_changes(*copy);
  runs_ = staging_.add(2 * changed_.size() * sizeof(StoredRun));
  staging_.reserve();
}

void Decode::stage_changes(LaneRows& copy) {
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
}

void Decode::stage_changes(const LaneRows& copy, int head, std::span<const int> slots, const LaneRows::Part& to) {
  const auto n = slots.size();
  const auto& keys = copy.key_planes();
  const auto& values = copy.value_planes();
  const Changed changed{.to = to,
                        .count = static_cast<int>(n),
                        .to_rows = staging_.add(n * sizeof(std::int32_t)),
                        .keys = staging_.add(n * keys.elements()),
                        .key_scales = staging_.add(n * keys.scales()),
                        .values = staging_.add(n * values.elements()),
                        .value_scales = staging_.add(n * values.scales())};
  for (std::size_t i = 0; i < n; ++i) {
    const auto entry = copy.lanes().entry(head, slots[i]);
    staging_.host<std::int32_t>(changed.to_rows)[i] = slots[i] - slots.front();
    keys.split(entry.key, 1, staging_.host<std::byte>(changed.keys) + i * keys.elements(),
               staging_.host<std::byte>(changed.key_scales) + i * keys.scales());
    values.split(entry.value, 1, staging_.host<std::byte>(changed.values) + i * values.elements(),
                 staging_.host<std::byte>(changed.value_scales) + i * values.scales());
  }
  changed_.push_back(changed);
}

/// Allocates outputs, probabilities, and states of items.
void Decode::place_results() {
  const auto& shape = step_.shape;
  const auto group = as_size(shape.group());
  const auto lanes = as_size(step_.rows) * as_size(shape.kv_heads);
  results_.width.assign(lanes, 0);
  for (const auto& captured : items_.captured()) {
    auto& width = results_.width[as_size(captured.row) * as_size(shape.kv_heads) + as_size(captured.kv_head)];
    width = std::max(width, captured.first + captured.count);
  }
  work_.clear();
  work_.add(step_.elements() * sizeof(float));
  results_.probabilities.clear();
  for (const int width : results_.width)
    results_.probabilities.push_back(work_.add(group * as_size(width) * sizeof(float)));
  results_.lse = work_.add(step_.queries() * sizeof(float));
  results_.on_host.resize(results_.lse / sizeof(float));
  results_.partial = work_.add(items_.items().size() * group * as_size(shape.head_dim + 2) * sizeof(float));
  work_.reserve();
}

/// Fills in the items, whose arrays have addresses now.
void Decode::address_items() {
  auto* to = staging_.host<winnow::device::DecodeItem>(staged_.items);
  for (const auto& item : items_.items()) {
    auto task = item.task;
    const auto lane = as_size(task.row) * as_size(step_.shape.kv_heads) + as_size(task.kv_head);
    if (item.positions) task.positions = staging_.at<std::int32_t>(staged_.positions) + *item.positions;
    if (item.centres) {
      task.rows = staging_.at<std::int32_t>(staged_.centres) + *item.centres;
      task.factors = staging_.at<float>(staged_.factors) + *item.centres;
    }
    task.stride = results_.width[lane];
    if (task.stride > 0) task.probabilities = work_.at<float>(results_.probabilities[lane]) + item.first;
    *to++ = task;
  }
}

/// Fills in the runs of changed entries.
void Decode::address_changes() {
  auto* const runs = staging_.host<StoredRun>(runs_);
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    const auto& changed = changed_[i];
    StoredRun run{};
    run.to_rows = staging_.at<std::int32_t>(changed.to_rows);
    run.count = changed.count;
    run.from_step = 1;
    run.sign = 1;
    run.from = staging_.at<std::byte>(changed.keys);
    run.from_scales = staging_.at<std::byte>(changed.key_scales);
    run.to = changed.to.keys;
    run.to_scales = changed.to.key_scales;
    runs[i] = run;
    run.from = staging_.at<std::byte>(changed.values);
    run.from_scales = staging_.at<std::byte>(changed.value_scales);
    run.to = changed.to.values;
    run.to_scales = changed.to.value_scales;
    runs[changed_.size() + i] = run;
  }
}

/// Queues the copies of changed entries to their places.
bool Decode::store() {
  if (changed_.empty()) return true;
  const auto most = std::ranges::max(changed_, {}, &Changed::count).count;
  const auto stored = [&](const RowPlanes& planes, std::size_t first) {
    const StoreTask task{.runs = staging_.at<StoredRun>(runs_) + first,
                         .angles = {},
                         .bad = nullptr,
                         .source = element_of(planes),
                         .element = element_of(planes),
                         .run_count = static_cast<std::int32_t>(changed_.size()),
                         .most = most,
                         .dim = step_.shape.head_dim};
    return gate_.accepts(device_.kernels()->store(task, device_.stream()));
  };
  return stored(any_copy().key_planes(), 0) && stored(any_copy().value_planes(), changed_.size());
}

bool Decode::decode(const Angles& angles) {
  const auto& shape = step_.shape;
  const DecodeTask task{.q = staging_.at<float>(staged_.q),
                        .out = work_.at<float>(0),
                        .lse = items_.captured().empty() ? nullptr : work_.at<float>(results_.lse),
                        .items = staging_.at<winnow::device::DecodeItem>(staged_.items),
                        .first_item = staging_.at<std::int32_t>(staged_.first_items),
                        .partial = work_.at<float>(results_.partial),
                        .sinks = shape.sink_logits.empty() ? nullptr : staging_.at<float>(staged_.sinks),
                        .angles = angles,
                        .listed = items_.is_listed() ? 1 : 0,
                        .key_element = element_of(any_copy().key_planes()),
                        .value_element = element_of(any_copy().value_planes()),
                        .item_count = static_cast<std::int32_t>(items_.items().size()),
                        .rows = step_.rows,
                        .heads = shape.query_heads,
                        .kv_heads = shape.kv_heads,
                        .dim = shape.head_dim,
                        .scale = shape.scale,
                        .cap = shape.cap};
  return gate_.accepts(device_.kernels()->decode(task, device_.stream()));
}

void Decode::run(Worker worker) {
  if (is_on_cpu_) return cpu_->run(worker);
  if (worker.index != 0) return;
  work_.read(0, std::span(results_.on_host));
  const float* const from = results_.on_host.data();
  std::copy_n(from, step_.elements(), step_.out);
  for (const auto& captured : items_.captured()) {
    const auto lane = as_size(captured.row) * as_size(step_.shape.kv_heads) + as_size(captured.kv_head);
    const auto width = as_size(results_.width[lane]);
    const float* const first = from + results_.probabilities[lane] / sizeof(float) + captured.first;
    for (std::size_t g = 0; g < as_size(step_.shape.group()); ++g)
      std::copy_n(first + g * width, captured.count, captured.to + static_cast<std::ptrdiff_t>(g) * captured.stride);
  }
}

void Decode::merge(Worker worker) {
  if (is_on_cpu_) cpu_->merge(worker);
}

/// The CPU's, which may have to compute the step, and the arrays that are copied: queries and outputs, positions,
/// changed entries and probabilities.
std::size_t Decode::bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const {
  const auto lanes = as_size(rows) * as_size(shape.kv_heads);
  const auto group = as_size(shape.group());
  const auto entries = as_size(lane.block) + as_size(lane.others);
  const auto vectors = lanes * (2 * group + 2) * as_size(shape.head_dim) * sizeof(float);
  const auto positions = rope == nullptr ? 0 : lanes * entries * sizeof(std::int32_t);
  const auto angles = rope == nullptr ? 0 : RotationTable::bytes(*rope, end);
  const auto copied = vectors + positions + lanes * group * entries * sizeof(float);
  return cpu_->bytes(shape, rows, lane, rope, end) + angles + copied;
}

}  // namespace winnow::attention::device
