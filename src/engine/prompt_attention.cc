// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/as_size.h"
#include "engine/layers.h"

namespace winnow::engine {

bool Watchers::scale_rows() const {
  return std::any_of(observations.begin(), observations.end(),
                     [](const auto* o) { return o->what().scale != attention::RowScale::one; });
}

void PromptAttention::store(const Tensors& tensors, Worker worker) {
  if (!row_scales_.empty()) scale_rows(tensors, worker);
  look_at_inputs(tensors, worker);
  if (tensors.k == nullptr) return;  // the scratch has what another layer has stored
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

void PromptAttention::look_at_inputs(const Tensors& tensors, Worker worker) const {
  for (int row = worker.index; row < tensors.rows; row += worker.count) {
    const float* const x = tensors.input + static_cast<std::ptrdiff_t>(row) * tensors.width;
    for (auto* const prediction : watchers_.predictions) prediction->add(first_ + row, x);
    if (float* const inputs = watchers_.records.inputs; inputs != nullptr)
      std::copy_n(x, tensors.width, inputs + static_cast<std::ptrdiff_t>(first_ + row) * tensors.width);
  }
}

void PromptAttention::observe(const Tensors& tensors, Worker worker) {
  const auto positions = scratch_.positions().subspan(first_, as_size(tensors.rows));
  for (auto* const moments : watchers_.moments) moments->add(tensors.q, positions, worker);
  for (auto* const tiles : watchers_.tiles) tiles->add(tensors.q, scratch_, first_, tensors.rows, worker);
  record_rows(tensors, worker);
}

void PromptAttention::record_rows(const Tensors& tensors, Worker worker) const {
  const auto width = static_cast<std::ptrdiff_t>(shape_.query_heads) * shape_.head_dim;
  float* const all = watchers_.records.queries;
  for (int row = worker.index; row < tensors.rows; row += worker.count) {
    const float* const queries = tensors.q + row * width;
    if (all != nullptr) std::copy_n(queries, width, all + (first_ + row) * width);
    for (auto* const some : watchers_.query_rows) some->store(first_ + row, queries, tensors.out + row * width);
  }
}

void PromptAttention::begin(const Tensors& tensors) {
  if (auto* const logsums = watchers_.records.logsums; logsums != nullptr)
    attention_.record_logsums(logsums + static_cast<std::ptrdiff_t>(first_) * shape_.query_heads);
  attention_.begin(shape_, scratch_, tensors.q, tensors.out, first_, tensors.rows, watchers_.observations,
                   watchers_.recorded, row_scales_.empty() ? nullptr : row_scales_.data(), past_);
}

}  // namespace winnow::engine
