// SPDX-License-Identifier: Apache-2.0
// Steps whose layers do not wait for the host.
#include "base/as_size.h"
#include "engine/lane_attention.h"

namespace winnow::engine {

void LaneAttention::begin_on_device(std::span<const Tensors> layers) {
  if (places_.is_planned) planned_ = attention_.on_device();
  if (planned_ == nullptr) return;
  entered_.resize(as_size(hparams_.n_kv_layer) * rows_.size() * as_size(most_heads_.kv));
  planned_->begin(static_cast<int>(rows_.size()));
  for (const auto& tensors : layers) plan_on_device(*planned_, tensors);
  planned_->upload();
}

void LaneAttention::plan_on_device(attention::DeviceStep& step, const Tensors& tensors) {
  const int layer = tensors.layer;
  std::vector<attention::EnteredRow> to;
  if (tensors.k != nullptr) {
    enter_on_device(layer);
    for (int row = 0; row < tensors.rows; ++row) {
      const auto& storage = layer_of(row, layer).lanes().storage();
      for (int head = 0; head < spec_of(layer).n_head_kv; ++head)
        to.push_back({row, head, &storage, entered(layer, row)[as_size(head)].slot});
    }
  }
  read(layer);
  count(layer);
  step.plan(shape_of(hparams_, layer), spec_of(layer).rope, reads_, to,
            {tensors.q, {tensors.k, tensors.v}, tensors.out});
}

/// Rows enter the lanes with keys and values of 0.
void LaneAttention::enter_on_device(int layer) {
  const auto& spec = spec_of(layer);
  const std::vector<float> zeros(as_size(spec.head_dim));
  for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
    for (int head = 0; head < spec.n_head_kv; ++head) {
      const int slot = enter(layer, row, head, zeros, zeros);
      entered(layer, row)[as_size(head)] = {slot, layer_of(row, layer).lanes().length(head)};
    }
    plan_as_entered(layer, row);
  }
}

/// Each query reads what was in the lane when its row had entered.
void LaneAttention::plan_as_entered(int layer, int row) {
  const auto plans = plans_of(layer, row);
  for (int head = 0; head < spec_of(layer).n_head_kv; ++head)
    plans[as_size(head)] = {{0, entered(layer, row)[as_size(head)].length, 0}};
}

std::span<LaneAttention::Entered> LaneAttention::entered(int kv_layer, int row) {
  const auto heads = as_size(most_heads_.kv);
  return std::span(entered_).subspan((as_size(kv_layer) * rows_.size() + as_size(row)) * heads, heads);
}

device::OnDevice LaneAttention::attend_on_device(const Tensors& tensors) {
  if (planned_ == nullptr) return device::OnDevice::not_done;
  if (planned_->attend(tensors.layer)) return device::OnDevice::done;
  take();  // the host may read keys of earlier layers
  return device::OnDevice::not_done;
}

void LaneAttention::take() {
  const auto bad = planned_->finish([this](int layer, const attention::NewRows& rows) {
    for (int head = 0; head < spec_of(layer).n_head_kv; ++head) fill(layer, head, rows);
  });
  if (!first_bad_) first_bad_ = bad;
}

std::optional<int> LaneAttention::end_on_device() {
  if (planned_ == nullptr) return {};
  take();
  for (int layer = 0; layer < hparams_.n_layer; ++layer) {
    for (const auto& stepping : stepping_) step(layer, stepping);
  }
  return first_bad_;
}

void LaneAttention::fill(int layer, int head, const attention::NewRows& rows) {
  const auto& spec = spec_of(layer);
  const auto dim = as_size(spec.head_dim);
  for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
    const std::size_t at = (as_size(row) * as_size(spec.n_head_kv) + as_size(head)) * dim;
    layer_of(row, layer)
        .lanes()
        .fill(head, entered(layer, row)[as_size(head)].slot, {rows.keys + at, dim}, {rows.values + at, dim});
  }
}

}  // namespace winnow::engine
