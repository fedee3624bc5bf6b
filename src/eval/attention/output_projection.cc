// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/output_projection.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/products.h"
#include "base/as_size.h"

namespace winnow::eval {

OutputProjection::OutputProjection(const model::Weights& weights, int layer)
    : dim_(as_size(weights.hparams().layer(layer).head_dim)) {
  const ggml_tensor& tensor = *weights.layer(layer).o.weight;
  width_ = static_cast<int>(tensor.ne[1]);
  inputs_ = as_size(tensor.ne[0]);
  rows_.resize(as_size(width_) * inputs_);
  const auto to_float = ggml_get_type_traits(tensor.type)->to_float;
  const std::byte* from = weights.in_file(&tensor);
  for (int i = 0; i < width_; ++i, from += ggml_row_size(tensor.type, tensor.ne[0])) {
    float* const to = rows_.data() + as_size(i) * inputs_;
    if (to_float == nullptr) {
      std::memcpy(to, from, inputs_ * sizeof(float));
    } else {
      to_float(from, to, tensor.ne[0]);
    }
  }
}

void OutputProjection::add(int query_head, std::span<const double> output, std::span<double> out) const {
  for (int i = 0; i < width_; ++i) {
    const float* const row = rows_.data() + as_size(i) * inputs_ + as_size(query_head) * dim_;
    double sum = 0;
    for (std::size_t c = 0; c < dim_; ++c) sum += static_cast<double>(row[c]) * output[c];
    out[as_size(i)] += sum;
  }
}

std::vector<float> OutputProjection::part(int query_head) const {
  std::vector<float> out;
  for (int i = 0; i < width_; ++i) {
    const auto row = std::span(rows_).subspan(as_size(i) * inputs_ + as_size(query_head) * dim_, dim_);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

double OutputProjection::largest(int query_head, std::span<const float> values) const {
  constexpr std::size_t kTogether = 64;  // values
  const attention::PackedRows projection(part(query_head), static_cast<int>(dim_));
  const auto stride = as_size(projection.stride());
  std::vector<float> projected(kTogether * stride);
  double most = 0;
  for (std::size_t first = 0; first < values.size(); first += kTogether * dim_) {
    const auto some = values.subspan(first, std::min(kTogether * dim_, values.size() - first));
    projection.multiply(some, projected);
    for (std::size_t i = 0; i < some.size() / dim_; ++i) {
      double sum = 0;
      for (int c = 0; c < width_; ++c) sum += std::abs(static_cast<double>(projected[i * stride + as_size(c)]));
      most = std::max(most, sum);
    }
  }
  return most;
}

}  // namespace winnow::eval
