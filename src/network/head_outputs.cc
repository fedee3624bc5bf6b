// SPDX-License-Identifier: Apache-2.0
#include "network/head_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/as_size.h"
#include "network/bf16_rows.h"
#include "network/row_sums.h"

namespace winnow::network {

namespace {

constexpr int kNodesPerHead = 3;  // rounding of the values, product, norms

/// Node over lengths [count, 2 H_q] that computes the norms of a head's outputs [n_embd, count].
void measure(ggml_tensor* lengths, int index, int count, void* head) {
  const ggml_tensor& made = *lengths->src[1];
  const std::int64_t tokens = lengths->ne[0];
  float* const absolute = static_cast<float*>(lengths->data) + 2 * tokens * *static_cast<const int*>(head);
  for (std::int64_t t = part(tokens, index, count); t < part(tokens, index + 1, count); ++t) {
    const auto* const row = static_cast<const std::byte*>(made.data) + as_size(t) * made.nb[1];
    const RowSums sums = sums_of({reinterpret_cast<const float*>(row), as_size(made.ne[0])});
    absolute[t] = sums.absolute;
    absolute[tokens + t] = std::sqrt(sums.squares);
  }
}

std::size_t bytes_of(const model::Hparams& hparams, const model::LayerSpec& spec) {
  const auto inputs = as_size(spec.n_head) * as_size(spec.head_dim);
  const auto packed = as_size(spec.n_head) * as_size(padded_inputs(spec.head_dim) * padded_outputs(hparams.n_embd));
  const auto of_tokens = as_size(HeadOutputs::kTokens) * (inputs + as_size(hparams.n_embd) + as_size(2 * spec.n_head));
  return (inputs * as_size(hparams.n_embd) + of_tokens) * sizeof(float) + packed * sizeof(std::uint16_t);
}

}  // namespace

std::size_t HeadOutputs::bytes(const model::Hparams& hparams) {
  std::size_t most = 0;
  for (const auto& kind : hparams.kinds) most = std::max(most, bytes_of(hparams, kind));
  return most;
}

int HeadOutputs::layers_of_graph(const model::Hparams& hparams) {
  int heads = 0;
  for (const auto& kind : hparams.kinds) heads = std::max(heads, kind.n_head);
  return 1 + kNodesPerHead * heads / ComputeGraph::kNodesPerLayer;
}

HeadOutputs::HeadOutputs(const model::Weights& weights, int layer, MemoryAccount& account, int threads)
    : projection_(*weights.layer(layer).o.weight),
      source_(weights.in_file(&projection_)),
      dim_(weights.hparams().layer(layer).head_dim),
      group_(weights.hparams().layer(layer).group()),
      heads_(as_size(weights.hparams().layer(layer).n_head)) {
  const auto inputs = as_size(projection_.ne[0]);
  const auto heads = heads_.size();
  const char* const purpose = "an output projection, head by head";
  weights_ = Buffer(account, inputs * as_size(projection_.ne[1]) * sizeof(float), purpose);
  rows_ = Buffer(account, as_size(threads) * inputs * sizeof(float), purpose);
  values_ = Buffer(account, as_size(kv_heads()) * as_size(kTokens * dim_) * sizeof(float), purpose);
  lengths_ = Buffer(account, 2 * heads * as_size(kTokens) * sizeof(float), purpose);
  metadata_.resize(heads * ggml_tensor_overhead());
  context_.reset(ggml_init({metadata_.size(), metadata_.data(), true}));
  std::iota(heads_.begin(), heads_.end(), 0);
  for (const int head : heads_) {
    ggml_tensor* const matrix = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, dim_, projection_.ne[1]);
    matrix->data = weights_.as<float>().data() + static_cast<std::ptrdiff_t>(head) * dim_ * projection_.ne[1];
    matrices_.push_back(matrix);
  }
}

void HeadOutputs::unpack(Worker worker) noexcept {
  const std::int64_t inputs = projection_.ne[0];
  const std::int64_t outputs = projection_.ne[1];
  const auto to_float = ggml_get_type_traits(projection_.type)->to_float;
  float* const row = rows_.as<float>().data() + worker.index * inputs;
  for (std::int64_t i = part(outputs, worker.index, worker.count); i < part(outputs, worker.index + 1, worker.count);
       ++i) {
    const std::byte* const from = source_ + as_size(i) * ggml_row_size(projection_.type, inputs);
    if (to_float == nullptr) {
      std::memcpy(row, from, as_size(inputs) * sizeof(float));
    } else {
      to_float(from, row, inputs);
    }
    for (const int head : heads_)
      std::copy_n(row + static_cast<std::ptrdiff_t>(head) * dim_, dim_,
                  static_cast<float*>(matrices_[as_size(head)]->data) + i * dim_);
  }
}

ggml_tensor* HeadOutputs::add_lengths(ggml_context* context, ComputeGraph& graph, int count) {
  ggml_tensor* lengths =
      graph.wrap(GGML_TYPE_F32, count, 2 * static_cast<std::int64_t>(heads_.size()), lengths_.data());
  ggml_tensor* values_of_head = nullptr;
  for (int& head : heads_) {
    if (head % group_ == 0) values_of_head = graph.wrap(GGML_TYPE_F32, dim_, count, values(head / group_));
    auto* const matrix = const_cast<ggml_tensor*>(matrices_[as_size(head)]);  // ggml's products take no const tensors
    ggml_tensor* made[] = {graph.linear().product(context, matrix, values_of_head)};
    lengths = ggml_custom_inplace(context, lengths, made, 1, measure, GGML_N_TASKS_MAX, &head);
  }
  return lengths;
}

void HeadOutputs::copy_lengths(int first, int tokens, int count, std::span<float> absolute,
                               std::span<float> euclidean) const {
  const float* from = lengths_.as<float>().data();
  for (const int head : heads_) {
    const auto to = static_cast<std::ptrdiff_t>(head) * tokens + first;
    std::copy_n(from, count, absolute.data() + to);
    std::copy_n(from + count, count, euclidean.data() + to);
    from += 2 * static_cast<std::ptrdiff_t>(count);
  }
}

}  // namespace winnow::network
