// SPDX-License-Identifier: Apache-2.0
#include "attention/device/whole_step.h"

#include <algorithm>
#include <utility>

#include "attention/device/store_task.h"
#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::attention::device {

using winnow::device::Element;
using winnow::device::Kernels;
using winnow::device::StoredRun;

namespace {

constexpr std::size_t kKeysAndValues = 2;

}  // namespace

void WholeStep::begin(int rows) {
  rows_ = rows;
  layers_.clear();
  arrays_.clear();
}

void WholeStep::plan(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads,
                     std::span<const EnteredRow> entered, const StepTensors& tensors) {
  auto& layer = layers_.emplace_back(
      Layer{.step = {context_, arrays_}, .tensors = tensors, .entered = {entered.begin(), entered.end()}});
  const bool fails = std::ranges::any_of(layers_, &Layer::is_left);
  layer.is_left = fails || !LayerStep::supports(shape, rope, reads);
  if (layer.is_left) return;
  try {
    layer.step.plan(shape, rope, reads, rows_, entered);
  } catch (const MemoryError& error) {
    context_.gate.tell(error.what());
    return leave();
  }
  if (entered.empty()) return;
  layer.runs = arrays_.staging.add(kKeysAndValues * entered.size() * sizeof(StoredRun));
  layer.kept = arrays_.staging.add(kKeysAndValues * sizeof(StoredRun));
}

void WholeStep::leave() {
  for (auto& layer : layers_) {
    if (!layer.is_left) layer.step.forget();
    layer.is_left = true;
  }
}

std::size_t WholeStep::elements(const Layer& layer) const {
  const auto& shape = layer.step.shape();
  return as_size(rows_) * as_size(shape.kv_heads) * as_size(shape.head_dim);
}

void WholeStep::upload() {
  if (std::ranges::all_of(layers_, &Layer::is_left)) return;
  try {
    place();
    arrays_.reserve();
  } catch (const MemoryError& error) {
    context_.gate.tell(error.what());
    return leave();
  }
  for (auto& layer : layers_) {
    if (!layer.is_left) address(layer);
  }
  arrays_.staging.upload();
  arrays_.work.fill_zeros(bad_, layers_.size() * sizeof(std::int32_t));
}

/// Places what is copied to the host side by side, after the probabilities that layers have been asked for.
void WholeStep::place() {
  auto& work = arrays_.work;
  bad_ = work.add(layers_.size() * sizeof(std::int32_t));
  std::size_t partial = 0;
  for (auto& layer : layers_) {
    if (layer.has_rows()) layer.rows = work.add(kKeysAndValues * elements(layer) * sizeof(float));
    if (!layer.is_left) partial = std::max(partial, layer.step.partial_bytes());
  }
  partial_ = end_ = work.add(partial);
}

void WholeStep::address(Layer& layer) {
  layer.step.address();
  if (!layer.has_rows()) return;
  const auto& shape = layer.step.shape();
  auto& staging = arrays_.staging;
  auto* const runs = staging.host<StoredRun>(layer.runs);
  auto* const kept = staging.host<StoredRun>(layer.kept);
  const auto run_of = [](const float* from, int count) {
    StoredRun run{};
    run.from = from;
    run.count = count;
    return run;
  };
  const std::size_t entered = layer.entered.size();
  for (std::size_t i = 0; i < entered; ++i) {
    const auto& at = layer.entered[i];
    const auto to = layer.step.copy_of(*at.storage).at(at.kv_head, at.slot);
    const auto from = (as_size(at.row) * as_size(shape.kv_heads) + as_size(at.kv_head)) * as_size(shape.head_dim);
    runs[i] = run_of(layer.tensors.entered.keys + from, 1);
    runs[i].to = to.keys;
    runs[i].to_scales = to.key_scales;
    runs[entered + i] = run_of(layer.tensors.entered.values + from, 1);
    runs[entered + i].to = to.values;
    runs[entered + i].to_scales = to.value_scales;
  }
  float* const rows = arrays_.work.at<float>(layer.rows);
  kept[0] = run_of(layer.tensors.entered.keys, rows_ * shape.kv_heads);
  kept[0].to = rows;
  kept[1] = run_of(layer.tensors.entered.values, rows_ * shape.kv_heads);
  kept[1].to = rows + elements(layer);
}

/// Queues the copies of changed entries and of new rows to their places. Returns false if a kernel refuses.
bool WholeStep::store(const Layer& layer, int number) {
  if (!layer.step.store()) return false;
  if (layer.entered.empty()) return true;
  const auto& copy = *layer.step.copies().front();
  const std::size_t count = layer.entered.size();
  const auto keys = copy.key_planes().element();
  const auto values = copy.value_planes().element();
  const bool are_stored = keys == values ? store(layer, layer.runs, 2 * count, keys)
                                         : store(layer, layer.runs, count, keys) &&
                                               store(layer, layer.runs + count * sizeof(StoredRun), count, values);
  if (!are_stored) return false;
  const auto& shape = layer.step.shape();
  auto kept =
      store_task({arrays_.staging.at<StoredRun>(layer.kept), kKeysAndValues, rows_ * shape.kv_heads, shape.head_dim},
                 Element::f32, Element::f32);
  kept.bad = arrays_.work.at<std::int32_t>(bad_) + number;
  return context_.gate.accepts(context_.device.queue(&Kernels::store, kept));
}

bool WholeStep::store(const Layer& layer, std::size_t runs, std::size_t count, Element element) {
  const RunsOfRows rows{arrays_.staging.at<StoredRun>(runs), count, 1, layer.step.shape().head_dim};
  return context_.gate.accepts(context_.device.queue(&Kernels::store, store_task(rows, Element::f32, element)));
}

bool WholeStep::attend(int layer) {
  auto& of = layers_[as_size(layer)];
  if (of.is_left || !context_.gate.is_open()) return false;
  float* const partial = arrays_.work.at<float>(partial_);
  of.is_done = store(of, layer) && of.step.decode(of.tensors.q, of.tensors.out, partial);
  if (!of.is_done) context_.copied->free_all();
  return of.is_done;
}

std::optional<int> WholeStep::finish(const std::function<void(int layer, const NewRows& rows)>& take) {
  if (std::ranges::none_of(layers_, &Layer::is_done)) return {};
  on_host_.resize(end_);
  arrays_.work.read(0, std::span(on_host_));
  std::optional<int> first_bad;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& layer = layers_[i];
    if (!std::exchange(layer.is_done, false)) continue;
    layer.step.deliver(reinterpret_cast<const float*>(on_host_.data()));
    if (!layer.has_rows()) continue;
    const auto number = static_cast<int>(i);
    const auto* const rows = reinterpret_cast<const float*>(on_host_.data() + layer.rows);
    take(number, {rows, rows + elements(layer)});
    for (auto* const copy : layer.step.copies()) copy->set_copied();
    const bool is_bad = reinterpret_cast<const std::int32_t*>(on_host_.data() + bad_)[i] != 0;
    if (is_bad && !first_bad) first_bad = number;
  }
  return first_bad;
}

}  // namespace winnow::attention::device
