// SPDX-License-Identifier: Apache-2.0
#include "attention/device/prefill.h"

#include <numbers>

#include "attention/device/scratch_rows.h"

namespace winnow::attention::device {

namespace {

using winnow::device::Element;
using winnow::device::ObserveTask;
using winnow::device::PrefillTask;

/// Types of scratches for which there are kernels.
bool is_supported(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }

}  // namespace

bool Prefill::supports(const Shape& shape, const cache::LayerScratch& scratch, int end,
                       std::span<ColumnStatistics* const> columns, const cache::PastRows* past) const {
  const auto is_lacking = [end](const ColumnStatistics* c) {
    const auto& request = c->request();
    const bool has_no_kernel = !request.power.empty() || request.rows.kind == QueryRowSet::Kind::copies;
    return has_no_kernel && request.rows.first(c->size()) < end;
  };
  return is_supported(scratch.type()) && shape.head_dim % winnow::device::kHeadUnit == 0 &&
         shape.head_dim <= winnow::device::kMostHead && std::ranges::none_of(columns, is_lacking) &&
         (past == nullptr || past->type() == scratch.type());
}

void Prefill::begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out, int first,
                    int count, std::span<ColumnStatistics* const> columns, KeyRange recorded, const float* row_scales,
                    const cache::PastRows* past) {
  is_on_cpu_ = !gate_.is_open() || !supports(shape, scratch, first + count, columns, past);
  if (!is_on_cpu_) {
    chunk_ = {shape, out, first, count, recorded};
    place(scratch, columns, row_scales, past);
    upload(q, past);
    is_on_cpu_ = !attend(scratch, past != nullptr);
  }
  if (is_on_cpu_) cpu_->begin(shape, scratch, q, out, first, count, columns, recorded, row_scales, past);
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

/// Allocates the chunk's arrays.
void Prefill::place(const cache::LayerScratch& scratch, std::span<ColumnStatistics* const> columns,
                    const float* row_scales, const cache::PastRows* past) {
  const auto heads = as_size(chunk_.shape.query_heads);
  const auto keys = as_size(chunk_.keys());
  work_.clear();
  q_ = work_.add(chunk_.elements() * sizeof(float));
  out_ = work_.add(chunk_.elements() * sizeof(float));
  lse_ = work_.add(chunk_.rows() * sizeof(float));
  sinks_ = work_.add(heads * sizeof(float));
  packed_ = work_.add(columns.empty() ? 0 : chunk_.rows() * cache::row_bytes(scratch.type(), chunk_.shape.head_dim));
  if (past != nullptr) place(*past);
  parts_.clear();
  for (auto* const into : columns) {
    auto observed = observed_rows(*into, chunk_.first, chunk_.count, chunk_.shape.window, row_scales);
    if (observed.rows.empty()) continue;
    const auto rows = work_.add(observed.rows.size() * sizeof(std::int32_t));
    const auto weights = work_.add(observed.weights.size() * sizeof(float));
    parts_.push_back({into, std::move(observed), rows, weights, work_.add(heads * keys * sizeof(float))});
  }
  columns_.resize(keys);
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

void Prefill::upload(const float* q, const cache::PastRows* past) const {
  work_.write(q_, std::span(q, chunk_.elements()));
  if (!chunk_.shape.sink_logits.empty()) work_.write(sinks_, chunk_.shape.sink_logits);
  for (const auto& part : parts_) {
    work_.write(part.rows, std::span(part.observed.rows));
    if (!part.observed.weights.empty()) work_.write(part.weights, std::span(part.observed.weights));
    work_.fill_zeros(part.columns, as_size(chunk_.shape.query_heads) * columns_.size() * sizeof(float));
  }
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

/// Queues attention and its statistics. Returns false if a kernel refuses.
bool Prefill::attend(const cache::LayerScratch& scratch, bool sees_past) {
  const auto& rows = ScratchRows::of(scratch, device_);
  const auto& shape = chunk_.shape;
  const PrefillTask task{.q = work_.at<float>(q_),
                         .out = work_.at<float>(out_),
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
  return gate_.accepts(device_.kernels()->prefill(task, device_.stream())) &&
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
      .first = prompt.first,
      .count = prompt.count,
      .heads = prompt.heads,
      .kv_heads = prompt.kv_heads,
      .dim = prompt.dim,
      .capacity = prompt.capacity,
      .begin = chunk_.recorded.begin,
      .end = chunk_.recorded.begin + chunk_.keys(),
      .stride = chunk_.keys(),
      .reach = part.observed.reach,
      .cap = prompt.cap,
  };
  return gate_.accepts(device_.kernels()->observe(task, device_.stream()));
}

void Prefill::run(Worker worker) {
  if (is_on_cpu_) return cpu_->run(worker);
  if (worker.index != 0) return;
  work_.read(out_, std::span(chunk_.out, chunk_.elements()));
  if (logsums_ != nullptr) {
    const std::span sums(logsums_, chunk_.rows());
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
    part.into->passed(head, chunk_.first + chunk_.count);
  }
}

void Prefill::reduce(Worker worker) {
  if (is_on_cpu_) cpu_->reduce(worker);
}

}  // namespace winnow::attention::device
