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

void ChunkAttention::begin(const Tensors& tensors) {
  if (auto* const logsums = watchers_.records.logsums; logsums != nullptr)
    attention_.record_logsums(logsums + static_cast<std::ptrdiff_t>(first_) * shape_.query_heads);
  attention_.begin(shape_, scratch_, tensors.q, tensors.out, first_, tensors.rows, watchers_.observations,
                   watchers_.recorded, row_scales());
}

const cache::LayerLanes& PastLanes::lanes(int layer) const {
  const auto& hparams = sequence.hparams();
  if (windows == nullptr || hparams.layer(layer).window == 0) return sequence.lanes(hparams.kv_layer(layer));
  return windows->lanes[as_size(hparams.place_of[layer])];
}

LaterAttention::LaterAttention(PastLanes& past, int layer, cache::LayerScratch& scratch, int first, Watchers watchers)
    : PromptAttention(shape_of(past.sequence.hparams(), layer), scratch, first, std::move(watchers)),
      past_(past),
      rope_(past.sequence.hparams().layer(layer).rope),
      lanes_(past.lanes(layer)) {
  for (int head = 0; head < shape_.kv_heads; ++head) {
    slots_.push_back(cache::slots_before(lanes_, head, past.tokens));
    entries_.push_back(slots_.back() + lanes_.merged_entries(head).of(0, slots_.back()).count());
  }
}

void LaterAttention::begin(const Tensors& tensors) {
  rows_ = tensors.rows;
  stride_ = *std::max_element(entries_.begin(), entries_.end()) + first_ + rows_;
  const auto bytes = as_size(rows_) * as_size(shape_.query_heads) * as_size(stride_) * sizeof(float);
  if (past_.probabilities.size() < bytes) {
    past_.probabilities = {};  // before the larger one comes
    past_.probabilities = Buffer(past_.account, bytes + bytes / 2, "attention probabilities of a turn");
  }
  reads_.clear();
  for (int row = first_; row < first_ + rows_; ++row) {
    for (int head = 0; head < shape_.kv_heads; ++head) read(row, head);
  }
  past_.attention.begin(shape_, rope_, reads_, tensors.q, tensors.out, rows_);
}

void LaterAttention::read(int row, int head) {
  pieces_.clear();
  if (shape_.window > 0) {
    add_pieces_of_window(row, head);
  } else {
    add_pieces(row, head);
  }
  for (const auto& piece : pieces_) {
    attention::DecodeRead read{row - first_, head, piece};
    if (is_observed(row)) {
      read.probabilities = probabilities_of(row, head * shape_.group()) + piece.first;
      read.probabilities_stride = stride_;
    }
    reads_.push_back(read);
  }
}

void LaterAttention::add_pieces(int row, int head) {
  const auto h = as_size(head);
  const std::int32_t position = scratch_.positions()[row];
  // Where effective positions are ranks, the scratch's rows have the ranks after the lane's.
  const bool ranked = lanes_.is_unrotated(head) && lanes_.shape().has_ranks();
  const std::int64_t shift = ranked ? static_cast<std::int64_t>(entries_[h]) + row - position : 0;
  lanes_.pieces(head, {0, slots_[h], shift}, pieces_);
  for (auto& piece : pieces_) {
    if (piece.centres != nullptr)
      piece.first += slots_[h] - lanes_.length(head);  // numbered after all slots of the lane
  }
  add_own_piece(head, 0, row + 1);
}

/// Nobody looks on, so that the numbers of entries do not matter.
void LaterAttention::add_pieces_of_window(int row, int head) {
  const std::int32_t position = scratch_.positions()[row];
  cache::AttendPlan plan;
  policy::add_positions(lanes_, head, position - shape_.window + 1, past_.tokens, plan);
  for (const auto& range : plan) lanes_.pieces(head, range, pieces_);
  add_own_piece(head, std::max(0, row + 1 - shape_.window), row + 1);
}

/// Of the lane, slots come before merged entries, in the order of their numbers; the scratch comes after both.
void LaterAttention::add_own_piece(int head, int first_row, int end_row) {
  const int count = end_row - first_row;
  pieces_.push_back({scratch_.keys(head).slice(first_row, count), scratch_.values(head).slice(first_row, count)});
  pieces_.back().first = entries_[as_size(head)];
}

bool LaterAttention::is_observed(int row) const {
  const auto sees = [row](const attention::Observation* o) { return o->what().rows.contains(row, o->size()); };
  return std::any_of(watchers_.observations.begin(), watchers_.observations.end(), sees);
}

float* LaterAttention::probabilities_of(int row, int query_head) const {
  const auto index = static_cast<std::ptrdiff_t>(row - first_) * shape_.query_heads + query_head;
  return past_.probabilities.as<float>().data() + index * stride_;
}

void LaterAttention::observe(const Tensors& tensors, Worker worker) {
  PromptAttention::observe(tensors, worker);
  for (int head = worker.index; head < shape_.query_heads; head += worker.count) {
    for (auto* const observation : watchers_.observations) {
      for (int row = first_; row < first_ + rows_; ++row) {
        if (observation->what().rows.contains(row, observation->size())) observe_row(*observation, row, head);
      }
    }
  }
}

void LaterAttention::observe_row(attention::Observation& observation, int row, int head) const {
  const auto& what = observation.what();
  const int past = entries_[head / shape_.group()];
  const float* const p = probabilities_of(row, head);
  float power = 1;
  double sum = 1;
  if (!what.power.empty()) {
    // softmax(g x) is softmax(x)^g over its sum, in which the sink counts, too.
    power = what.power[what.power.size() - as_size(observation.size() - row)];
    const double to_keys = std::accumulate(p, p + past + row + 1, 0.0);
    sum = shape_.sink_logits.empty() ? 0 : std::pow(std::max(0.0, 1 - to_keys), power);
    for (int j = 0; j <= past + row; ++j) sum += std::pow(p[j], power);
  }
  const bool band = what.rows.kind == attention::ObservedRows::Kind::band;
  const int first = std::max(watchers_.recorded.begin, band ? row - what.rows.count : 0);
  const int end = std::min(watchers_.recorded.end, row + 1);
  const auto out = observation.head(head);
  const float scale = what.scale == attention::RowScale::one ? 1 : row_scales()[row - first_];
  const float weight = scale * what.weight_of(row, observation.size());
  for (int j = first; j < end; ++j) {
    const float x = weight * (power == 1 ? p[past + j] : static_cast<float>(std::pow(p[past + j], power) / sum));
    float& to = out[j];
    to = what.reduction == attention::Reduction::sum ? to + x : std::max(to, x);
  }
}

}  // namespace winnow::engine
