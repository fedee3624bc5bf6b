// SPDX-License-Identifier: Apache-2.0
#include "network/expert_rows.h"

#include <algorithm>
#include <cstring>

#include "base/as_size.h"
#include "base/worker.h"
#include "network/bf16_rows.h"

namespace winnow::network {

namespace {

/// The largest number of experts per row.
int most_used(const model::Hparams& hparams) {
  int most = 0;
  for (const auto& kind : hparams.kinds) most = std::max(most, kind.n_expert_used);
  return most;
}

template <class T>
T* row_start(const ggml_tensor& x, std::int64_t row) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(x.data) + as_size(row) * x.nb[1]);
}

}  // namespace

std::size_t ExpertRows::bytes(const model::Hparams& hparams, std::size_t rows) {
  const std::size_t of_choice = sizeof(std::int32_t) + sizeof(float) + sizeof(std::int32_t);
  return rows * (as_size(hparams.n_embd) * sizeof(std::uint16_t) + as_size(most_used(hparams)) * of_choice);
}

ExpertRows::ExpertRows(MemoryAccount& account, const model::Hparams& hparams, int rows)
    : rows_(rows),
      n_embd_(hparams.n_embd),
      inputs_(account, as_size(rows) * as_size(n_embd_) * sizeof(std::uint16_t), "the experts' input for a prompt"),
      chosen_(account, as_size(rows) * as_size(most_used(hparams)) * sizeof(std::int32_t), "a prompt's experts"),
      shares_(account, as_size(rows) * as_size(most_used(hparams)) * sizeof(float), "weights of a prompt's experts"),
      places_(account, as_size(rows) * as_size(most_used(hparams)) * sizeof(std::int32_t), "the rows of experts") {}

ggml_tensor* ExpertRows::keep(ggml_context* context, ggml_tensor* x, ggml_tensor* chosen, ggml_tensor* shares) {
  used_ = static_cast<int>(chosen->ne[0]);
  ends_.clear();
  ggml_tensor* from[] = {x, chosen, shares};
  return ggml_custom_4d(context, GGML_TYPE_F32, n_embd_, x->ne[1], 1, 1, from, 3, keep_rows, GGML_N_TASKS_MAX, this);
}

void ExpertRows::keep_rows(ggml_tensor* out, int index, int count, void* self) {
  auto& s = *static_cast<ExpertRows*>(self);
  const auto k = as_size(s.used_);
  for (std::int64_t i = part(out->ne[1], index, count); i < part(out->ne[1], index + 1, count); ++i) {
    const auto row = as_size(s.first_) + as_size(i);
    round_row(row_start<const float>(*out->src[0], i), s.n_embd_, s.n_embd_,
              s.inputs_.as<std::uint16_t>().data() + row * as_size(s.n_embd_));
    std::memcpy(s.chosen_.as<std::int32_t>().data() + row * k, row_start<void>(*out->src[1], i),
                k * sizeof(std::int32_t));
    std::memcpy(s.shares_.as<float>().data() + row * k, row_start<void>(*out->src[2], i), k * sizeof(float));
    std::memset(row_start<void>(*out, i), 0, as_size(s.n_embd_) * sizeof(float));
  }
}

/// Counting sort, which keeps the order of each expert's rows.
void ExpertRows::sort(const model::LayerSpec& layer) {
  const auto chosen = chosen_.as<std::int32_t>().first(as_size(rows_) * as_size(used_));
  ends_.assign(as_size(layer.n_expert) + 1, 0);
  for (const auto expert : chosen) ++ends_[as_size(expert) + 1];
  for (std::size_t expert = 1; expert < ends_.size(); ++expert) ends_[expert] += ends_[expert - 1];
  for (std::size_t place = 0; place < chosen.size(); ++place)
    places_.as<std::int32_t>()[as_size(ends_[as_size(chosen[place])]++)] = static_cast<std::int32_t>(place);
  ends_.pop_back();
  expert_ = 0;
  next_ = 0;
}

ExpertRows::Group ExpertRows::next(const model::LayerSpec& layer, int most) {
  if (ends_.empty()) sort(layer);
  while (expert_ < layer.n_expert && next_ == ends_[as_size(expert_)]) ++expert_;
  if (expert_ == layer.n_expert) return {};
  const int begin = expert_ == 0 ? 0 : ends_[as_size(expert_) - 1];
  const int end = ends_[as_size(expert_)];
  const int rows = std::min(most, end - next_);
  group_ = places_.as<std::int32_t>().subspan(as_size(next_), as_size(rows));
  next_ += rows;
  return {expert_, end - begin, rows};
}

ggml_tensor* ExpertRows::inputs(ggml_context* context) {
  return ggml_custom_4d(context, GGML_TYPE_F32, n_embd_, std::ssize(group_), 1, 1, nullptr, 0, widen_rows,
                        GGML_N_TASKS_MAX, this);
}

void ExpertRows::widen_rows(ggml_tensor* out, int index, int count, void* self) {
  auto& s = *static_cast<ExpertRows*>(self);
  for (std::int64_t i = part(out->ne[1], index, count); i < part(out->ne[1], index + 1, count); ++i) {
    const auto* const from =
        s.inputs_.as<ggml_bf16_t>().data() + as_size(s.group_[as_size(i)] / s.used_) * as_size(s.n_embd_);
    ggml_bf16_to_fp32_row(from, row_start<float>(*out, i), s.n_embd_);
  }
}

ggml_tensor* ExpertRows::add(ggml_context* context, ggml_tensor* y, float* hidden, float scale) {
  hidden_ = hidden;
  scale_ = scale;
  return ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, &y, 1, add_rows, GGML_N_TASKS_MAX, this);
}

/// No row has an expert twice, so no two threads add to the same row.
void ExpertRows::add_rows(ggml_tensor* out, int index, int count, void* self) {
  auto& s = *static_cast<ExpertRows*>(self);
  const ggml_tensor& y = *out->src[0];
  for (std::int64_t i = part(y.ne[1], index, count); i < part(y.ne[1], index + 1, count); ++i) {
    const auto place = as_size(s.group_[as_size(i)]);
    const float share = s.scale_ * s.shares_.as<float>()[place];
    const auto* const from = row_start<const float>(y, i);
    float* const to = s.hidden_ + place / as_size(s.used_) * as_size(s.n_embd_);
    for (int column = 0; column < s.n_embd_; ++column) to[column] += share * from[column];
  }
}

}  // namespace winnow::network
