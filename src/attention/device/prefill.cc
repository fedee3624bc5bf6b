// SPDX-License-Identifier: Apache-2.0
#include "attention/device/prefill.h"

#include <numbers>

#include "attention/device/store_task.h"

namespace winnow::attention::device {

namespace {

using winnow::device::Element;
using winnow::device::Kernels;
using winnow::device::ObserveTask;
using winnow::device::OnDevice;
using winnow::device::PrefillTask;
using winnow::device::StoredRun;

/// Types of scratches for which there are kernels.
bool is_supported(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }

}  // namespace

bool Prefill::supports(const cache::LayerScratch& scratch) const {
  const auto is_lacking = [end = end()](const ColumnStatistics* c) {
    return !c->request().power.empty() && c->request().rows.first(c->size()) < end;
  };
  return gate_.is_open() && is_supported(scratch.type()) && KernelGate::takes_heads(chunk_.shape.head_dim) &&
         std::ranges::none_of(chunk_.columns, is_lacking) &&
         (chunk_.past == nullptr || chunk_.past->type() == scratch.type());
}

void Prefill::begin(const PromptQueries& queries, const cache::LayerScratch& scratch) {
  chunk_ = queries;
  is_on_cpu_ = !supports(scratch) || !attend_over_copies(scratch);
  if (is_on_cpu_) cpu_->begin(queries, scratch);
}

void Prefill::begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
                    const VisibleRange& visible) {
  is_on_cpu_ = true;
  cpu_->begin(shape, scratch, q, out, visible);
}

void Prefill::record_logsums(float* sums) {
  logsums_ = sums;
  cpu_->record_logsums(sums);
}

bool Prefill::attend_over_copies(const cache::LayerScratch& scratch) {
  work_.clear();
  q_ = work_.add(elements() * sizeof(float));
  out_ = work_.add(elements() * sizeof(float));
  place(scratch);
  upload();
  work_.write(q_, std::span(chunk_.q, elements()));
  return attend(work_.at<float>(q_), work_.at<float>(out_), ScratchRows::of(scratch, device_, end()), scratch);
}

OnDevice Prefill::attend_on_device(const PromptQueries& queries, const NewRows& rows, cache::LayerScratch& scratch) {
  chunk_ = queries;
  if (!supports(scratch)) return OnDevice::not_done;
  work_.clear();
  runs_ = work_.add(2 * as_size(scratch.kv_heads()) * sizeof(winnow::device::StoredRun));
  bad_ = work_.add(sizeof(std::int32_t));
  place(scratch);
  upload();
  work_.fill_zeros(bad_, sizeof(std::int32_t));
  const bool has_rows = rows.keys != nullptr;
  auto& copy = ScratchRows::of(scratch, device_, has_rows ? chunk_.first : end());
  if (has_rows && !store(rows, scratch, copy)) return OnDevice::not_done;
  if (!attend(chunk_.q, chunk_.out, copy, scratch)) return OnDevice::not_done;
  std::int32_t is_bad = 0;
  work_.read(bad_, std::span(&is_bad, 1));  // waits, also if the device is not in order
  if (has_rows) copy.add_rows(chunk_.first, end());
  read_statistics();
  return is_bad != 0 ? OnDevice::not_finite : OnDevice::done;
}

/// Allocates the chunk's arrays, after those that have been added.
void Prefill::place(const cache::LayerScratch& scratch) {
  const auto heads = as_size(chunk_.shape.query_heads);
  lse_ = work_.add(vectors() * sizeof(float));
  sinks_ = work_.add(heads * sizeof(float));
  packed_ = work_.add(chunk_.columns.empty() ? 0 : vectors() * cache::row_bytes(scratch.type(), chunk_.shape.head_dim));
  if (chunk_.past != nullptr) place(*chunk_.past);
  parts_.clear();
  for (auto* const into : chunk_.columns) {
    auto observed = observed_rows(*into, chunk_.first, chunk_.count, chunk_.shape.window, chunk_.row_scales);
    if (observed.rows.empty()) continue;
    const auto rows = work_.add(observed.rows.size() * sizeof(std::int32_t));
    const auto weights = work_.add(observed.weights.size() * sizeof(float));
    parts_.push_back({into, std::move(observed), rows, weights, work_.add(heads * as_size(keys()) * sizeof(float))});
  }
  columns_.resize(as_size(keys()));
  work_.reserve();
}

void Prefill::place(const cache::PastRows& past) {
  past_.first.assign(1, 0);
  for (int head = 0; head < past.kv_heads(); ++head) past_.first.push_back(past_.first.back() + past.count(head));
  const auto bytes = as_size(past_.first.back()) * cache::row_bytes(past.type(), chunk_.shape.head_dim);
  past_.keys = work_.add(bytes);
  past_.values = work_.add(bytes);
  past_.firsts = work_.add(past_.first.size() * sizeof(std::int32_t));
}

void Prefill::upload() const {
  if (!chunk_.shape.sink_logits.empty()) work_.write(sinks_, chunk_.shape.sink_logits);
  for (const auto& part : parts_) {
    work_.write(part.rows, std::span(part.observed.rows));
    if (!part.observed.weights.empty()) work_.write(part.weights, std::span(part.observed.weights));
    work_.fill_zeros(part.columns, as_size(chunk_.shape.query_heads) * columns_.size() * sizeof(float));
  }
  const auto* const past = chunk_.past;
  if (past == nullptr) return;
  work_.write(past_.firsts, std::span(past_.first));
  for (int head = 0; head < past->kv_heads(); ++head) {
    const auto keys = past->keys(head);
    const auto values = past->values(head);
    const std::size_t at = as_size(past_.first[as_size(head)]) * keys.stride;
    work_.write(past_.keys + at, std::span(keys.data, as_size(keys.count) * keys.stride));
    work_.write(past_.values + at, std::span(values.data, as_size(values.count) * values.stride));
  }
}

/// Queues the encoding of new rows in the scratch's copy. Returns false if the kernel refuses.
bool Prefill::store(const NewRows& rows, const cache::LayerScratch& scratch, const ScratchRows& to) {
  const auto runs = to.runs(scratch, rows, chunk_.first);
  work_.write(runs_, std::span(runs));
  const RunsOfRows all{work_.at<StoredRun>(runs_), runs.size(), chunk_.count, scratch.head_dim()};
  auto task = store_task(all, Element::f32, static_cast<Element>(scratch.type()));
  task.bad = work_.at<std::int32_t>(bad_);
  return gate_.accepts(device_.queue(&Kernels::store, task));
}

/// Queues attention and its statistics. Returns false if a kernel refuses.
bool Prefill::attend(const float* q, float* out, const ScratchRows& rows, const cache::LayerScratch& scratch) {
  const auto& shape = chunk_.shape;
  const bool sees_past = chunk_.past != nullptr;
  const PrefillTask task{.q = q,
                         .out = out,
                         .lse = work_.at<float>(lse_),
                         .packed = parts_.empty() ? nullptr : work_.at<void>(packed_),
                         .keys = rows.keys(),
                         .values = rows.values(),
                         .sinks = shape.sink_logits.empty() ? nullptr : work_.at<float>(sinks_),
                         .past_keys = sees_past ? work_.at<void>(past_.keys) : nullptr,
                         .past_values = sees_past ? work_.at<void>(past_.values) : nullptr,
                         .past_first = sees_past ? work_.at<std::int32_t>(past_.firsts) : nullptr,
                         .element = static_cast<Element>(scratch.type()),
                         .first = chunk_.first,
                         .count = chunk_.count,
                         .heads = shape.query_heads,
                         .kv_heads = shape.kv_heads,
                         .dim = shape.head_dim,
                         .capacity = scratch.capacity(),
                         .window = shape.window,
                         .scale = shape.scale,
                         .cap = shape.cap};
  return gate_.accepts(device_.queue(&Kernels::prefill, task)) &&
         std::ranges::all_of(parts_, [&](const Part& part) { return observe(part, task); });
}

bool Prefill::observe(const Part& part, const PrefillTask& prompt) {
  if (columns_.empty()) return true;
  const bool is_sum = part.into->request().reduction == Reduction::sum;
  const ObserveTask task{
      .packed = prompt.packed,
      .lse = prompt.lse,
      .keys = prompt.keys,
      .rows = work_.at<std::int32_t>(part.rows),
      .weights = part.observed.weights.empty() ? nullptr : work_.at<float>(part.weights),
      .columns = work_.at<float>(part.columns),
      .element = prompt.element,
      .reduction = is_sum ? winnow::device::Reduction::sum : winnow::device::Reduction::max,
      .observed = static_cast<std::int32_t>(part.observed.rows.size()),
      .first = prompt.first - part.observed.lag,
      .count = prompt.count,
      .heads = prompt.heads,
      .kv_heads = prompt.kv_heads,
      .dim = prompt.dim,
      .capacity = prompt.capacity,
      .begin = chunk_.recorded.begin,
      .end = chunk_.recorded.begin + keys(),
      .stride = keys(),
      .reach = part.observed.reach,
      .cap = prompt.cap,
  };
  return gate_.accepts(device_.queue(&Kernels::observe, task));
}

void Prefill::run(Worker worker) {
  if (is_on_cpu_) return cpu_->run(worker);
  if (worker.index != 0) return;
  work_.read(out_, std::span(chunk_.out, elements()));
  read_statistics();
}

void Prefill::read_statistics() {
  if (logsums_ != nullptr) {
    const std::span sums(logsums_, vectors());
    work_.read(lse_, sums);
    for (float& sum : sums) sum *= std::numbers::ln2_v<float>;
  }
  for (const auto& part : parts_) add(part);
}

/// Adds the chunk's statistics to those of earlier chunks.
void Prefill::add(const Part& part) {
  const bool is_sum = part.into->request().reduction == Reduction::sum;
  for (int head = 0; head < chunk_.shape.query_heads; ++head) {
    work_.read(part.columns + as_size(head) * columns_.size() * sizeof(float), std::span(columns_));
    float* const into = part.into->head(head).data() + chunk_.recorded.begin;
    for (std::size_t key = 0; key < columns_.size(); ++key)
      into[key] = is_sum ? into[key] + columns_[key] : std::max(into[key], columns_[key]);
    part.into->passed(head, end());
  }
}

void Prefill::reduce(Worker worker) {
  if (is_on_cpu_) cpu_->reduce(worker);
}

}  // namespace winnow::attention::device
