// SPDX-License-Identifier: Apache-2.0
#include "network/chosen.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>

#include <algorithm>

#include "base/as_size.h"
#include "base/worker.h"

namespace winnow::network {

namespace {

constexpr std::int64_t kOutputs = 64;  // their weights stay in the cache while the rows of an expert are multiplied

template <class T = std::byte>
T* at(const ggml_tensor& x, std::int64_t i1, std::int64_t i2) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(x.data) + as_size(i1) * x.nb[1] + as_size(i2) * x.nb[2]);
}

void round_rows(ggml_tensor* out, int index, int count, void*) {
  const ggml_tensor& x = *out->src[0];
  const auto from_float = ggml_get_type_traits_cpu(out->type)->from_float;
  const std::int64_t rows = x.ne[1] * x.ne[2];
  for (std::int64_t row = part(rows, index, count); row < part(rows, index + 1, count); ++row) {
    const std::int64_t i1 = row % x.ne[1];
    const std::int64_t i2 = row / x.ne[1];
    from_float(at<const float>(x, i1, i2), at<void>(*out, i1, i2), x.ne[0]);
  }
}

/// Products of one row with some outputs of one expert.
struct Share {
  const ggml_tensor& weight;
  const ggml_tensor& x;
  const ggml_tensor& out;

  void multiply(int expert, std::int64_t place, std::int64_t first, std::int64_t last) const {
    const auto dot = ggml_get_type_traits_cpu(weight.type)->vec_dot;
    const std::int64_t slot = place % out.ne[1];
    const std::int64_t row = place / out.ne[1];
    const auto* const from = at(x, slot % x.ne[1], row);
    auto* const to = at<float>(out, slot, row);
    for (std::int64_t o = first; o < last; ++o)
      dot(static_cast<int>(weight.ne[0]), to + o, 0, at(weight, o, expert), 0, from, 0, 1);
  }
};

/// Uses ggml's dot product of one row with one row of weights, so results do not depend on other rows. Each thread
/// computes some outputs of all experts, for one expert after the other with all its rows.
void multiply_rows(ggml_tensor* out, int index, int count, void*) {
  const Share share{*out->src[0], *out->src[1], *out};
  const auto* const experts = static_cast<const std::int32_t*>(out->src[2]->data);
  const std::int64_t places = out->ne[1] * out->ne[2];
  const std::int64_t end = part(out->ne[0], index + 1, count);
  for (std::int64_t place = 0; place < places; ++place) {
    const auto expert = experts[place];
    if (std::find(experts, experts + place, expert) != experts + place) continue;  // done with an earlier place
    for (std::int64_t first = part(out->ne[0], index, count); first < end; first += kOutputs) {
      for (std::int64_t same = place; same < places; ++same) {
        if (experts[same] == expert) share.multiply(expert, same, first, std::min(first + kOutputs, end));
      }
    }
  }
}

/// ggml multiplies row by row if there is one row, and always with repacked experts.
bool multiplies_single_rows(const ggml_tensor& weight, std::int64_t rows) {
  return rows == 1 || !ggml_backend_buffer_is_host(weight.buffer);
}

}  // namespace

ggml_tensor* Chosen::product(const model::ExpertMatrices& by, ggml_tensor* x) {
  const bool together = how_ == Products::Experts::together;
  ggml_tensor* const weight =
      together && gives_each_many_rows(by.of_many_rows->ne[2]) ? by.of_many_rows : by.of_single_rows;
  ggml_tensor* const out = together || multiplies_single_rows(*weight, experts_->ne[1])
                               ? ggml_mul_mat_id(context_, weight, x, experts_)
                               : product_row_by_row(weight, x);
  return by.bias == nullptr ? out : ggml_add_id(context_, out, by.bias, experts_);
}

/// True for four rows per expert on average. Some experts then have eight, from which on ggml has multi-row kernels.
bool Chosen::gives_each_many_rows(std::int64_t experts) const {
  constexpr int kManyRows = 4;
  return ggml_nelements(experts_) >= kManyRows * experts;
}

ggml_tensor* Chosen::product_row_by_row(ggml_tensor* weight, ggml_tensor* x) {
  const auto type = ggml_get_type_traits_cpu(weight->type)->vec_dot_type;
  ggml_tensor* inputs[] = {weight, type == GGML_TYPE_F32 ? x : rounded(x, type), experts_};
  return ggml_custom_4d(context_, GGML_TYPE_F32, weight->ne[1], experts_->ne[0], experts_->ne[1], 1, inputs, 3,
                        multiply_rows, GGML_N_TASKS_MAX, nullptr);
}

ggml_tensor* Chosen::rounded(ggml_tensor* x, ggml_type type) {
  if (x == x_ && rounded_->type == type) return rounded_;
  x_ = x;
  rounded_ =
      ggml_custom_4d(context_, type, x->ne[0], x->ne[1], x->ne[2], 1, &x, 1, round_rows, GGML_N_TASKS_MAX, nullptr);
  return rounded_;
}

}  // namespace winnow::network
