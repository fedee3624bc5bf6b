// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/as_size.h"

namespace winnow::engine {

PromptAttention::PromptAttention(attention::PrefillAttention& attention, const attention::Shape& shape,
                                 cache::LayerScratch& scratch, int first, ChunkObservers observers,
                                 const cache::PastRows* past)
    : attention_(attention),
      shape_(shape),
      scratch_(scratch),
      first_(first),
      chunk_observers_(std::move(observers)),
      past_(past) {
  for (auto* const observer : chunk_observers_.observers) {
    const auto more = observer->columns();
    columns_.insert(columns_.end(), more.begin(), more.end());
  }
  for (auto* const columns : columns_) columns->begin_copy(chunk_observers_.distance);
  const auto is_scaled = [](const auto* columns) { return columns->request().scale != attention::RowScale::one; };
  if (std::ranges::any_of(columns_, is_scaled)) row_scales_.resize(as_size(scratch.size() - first));
}

void PromptAttention::store(const Tensors& tensors, Worker worker) {
  if (!row_scales_.empty()) scale_rows(tensors, worker);
  for (auto* const observer : chunk_observers_.observers) {
    if (observer->needs().inputs) observer->see_inputs({first_, tensors.rows, tensors.width, tensors.input}, worker);
  }
  if (tensors.k == nullptr) return;  // another layer has stored them in the scratch
  const auto width = static_cast<std::ptrdiff_t>(scratch_.kv_heads()) * scratch_.head_dim();
  for (int row = worker.index; row < tensors.rows; row += worker.count)
    scratch_.store(first_ + row, tensors.k + row * width, tensors.v + row * width);
}

void PromptAttention::scale_rows(const Tensors& tensors, Worker worker) {
  for (int row = worker.index; row < tensors.rows; row += worker.count) {
    const float* const x = tensors.input + static_cast<std::ptrdiff_t>(row) * tensors.width;
    const double square = std::inner_product(x, x + tensors.width, x, 0.0);
    row_scales_[as_size(row)] = square > 0 ? static_cast<float>(1 / std::sqrt(square)) : 0;
  }
}

void PromptAttention::finish(const Tensors& tensors, Worker worker) {
  for (auto* const observer : chunk_observers_.observers) {
    if (observer->needs().queries) observer->see_rows({first_, tensors.rows, tensors.q, tensors.out, scratch_}, worker);
  }
}

void PromptAttention::begin(const Tensors& tensors) {
  record_logsums();
  attention_.begin(queries(tensors), scratch_);
}

/// Rows that observers read are left to the phases, which have them in the host's memory.
device::OnDevice PromptAttention::attend_on_device(const Tensors& tensors) {
  const auto reads_rows = [](const auto* observer) { return observer->needs().inputs || observer->needs().queries; };
  if (!row_scales_.empty() || std::ranges::any_of(chunk_observers_.observers, reads_rows))
    return device::OnDevice::not_done;
  record_logsums();
  return attention_.attend_on_device(queries(tensors), {tensors.k, tensors.v}, scratch_);
}

void PromptAttention::record_logsums() {
  for (auto* const observer : chunk_observers_.observers) {
    float* const sums = observer->logsums();
    if (sums != nullptr) attention_.record_logsums(sums + static_cast<std::ptrdiff_t>(first_) * shape_.query_heads);
  }
}

attention::PromptQueries PromptAttention::queries(const Tensors& tensors) const {
  return {.shape = shape_,
          .q = tensors.q,
          .out = tensors.out,
          .first = first_,
          .count = tensors.rows,
          .columns = columns_,
          .recorded = chunk_observers_.recorded,
          .row_scales = row_scales_.empty() ? nullptr : row_scales_.data(),
          .past = past_};
}

}  // namespace winnow::engine
