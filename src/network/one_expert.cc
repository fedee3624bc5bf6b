// SPDX-License-Identifier: Apache-2.0
#include "network/one_expert.h"

#include "base/as_size.h"

namespace winnow::network {

void OneExpert::be(const model::Weights& weights, int layer, int expert) {
  context_.reset(ggml_init({metadata_.size(), metadata_.data(), true}));
  const auto& all = weights.layer(layer).experts;
  one_ = {};
  if (all.gate.of_many_rows != nullptr) one_.gate = slice(weights, all.gate, expert);
  one_.up = slice(weights, all.up, expert);
  one_.down = slice(weights, all.down, expert);
}

std::vector<const ggml_tensor*> OneExpert::matrices() const {
  std::vector<const ggml_tensor*> out;
  for (const auto* const by : {&one_.gate, &one_.up, &one_.down}) {
    if (by->of_many_rows != nullptr) out.push_back(by->of_many_rows);
  }
  return out;
}

model::ExpertMatrices OneExpert::slice(const model::Weights& weights, const model::ExpertMatrices& all, int expert) {
  const ggml_tensor& m = *all.of_many_rows;
  const std::size_t bytes = ggml_row_size(m.type, m.ne[0]) * as_size(m.ne[1]);
  model::ExpertMatrices out;
  out.of_many_rows = slice(m, weights.in_file(&m) + as_size(expert) * bytes, m.ne[1]);
  out.of_single_rows = out.of_many_rows;
  if (all.bias != nullptr) {
    const ggml_tensor& b = *all.bias;
    out.bias = slice(b, weights.in_file(&b) + as_size(expert) * b.nb[1], 1);
  }
  return out;
}

/// The tensor has data but no buffer: graph allocators do not move tensors that have data.
ggml_tensor* OneExpert::slice(const ggml_tensor& all, const std::byte* data, std::int64_t outputs) {
  ggml_tensor* const out = ggml_new_tensor_2d(context_.get(), all.type, all.ne[0], outputs);
  out->data = const_cast<std::byte*>(data);
  return out;
}

}  // namespace winnow::network
