// SPDX-License-Identifier: Apache-2.0
#include "network/finite.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/as_size.h"

namespace winnow::network {

namespace {

/// The first row of a tensor in the file with a value that is not finite; -1: none.
std::int64_t bad_row(const model::Weights& weights, const ggml_tensor& tensor) {
  const std::byte* from = weights.in_file(&tensor);
  const auto to_float = ggml_get_type_traits(tensor.type)->to_float;
  std::vector<float> row(tensor.ne[0]);
  for (std::int64_t i = 0; i < ggml_nrows(&tensor); ++i, from += ggml_row_size(tensor.type, tensor.ne[0])) {
    if (to_float == nullptr) {
      std::memcpy(row.data(), from, row.size() * sizeof(float));
    } else {
      to_float(from, row.data(), tensor.ne[0]);
    }
    if (!all_finite(row)) return weights.first_row(&tensor) + i;
  }
  return -1;
}

/// All tensors of the previous layer and of `layer`, among them those between the attention of both.
std::vector<const ggml_tensor*> tensors_before(const model::Weights& weights, int layer) {
  std::vector<const ggml_tensor*> out;
  const auto add = [&](const std::vector<const ggml_tensor*>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  add(layer == 0 ? std::vector<const ggml_tensor*>{weights.token_embedding()} : weights.layer(layer - 1).all());
  if (layer > 0 && weights.layer_embedding() != nullptr) add({weights.layer_embedding()});
  if (layer < weights.hparams().n_layer) {
    add(weights.layer(layer).all());
  } else {
    add({weights.output_norm().weight, weights.output().weight});
  }
  return out;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000;  // all ones: NaN or infinite
  std::uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

void FiniteCheck::check(int layer, std::span<const float> values, Worker worker) noexcept {
  const auto share = [&](int index) { return values.size() * as_size(index) / as_size(worker.count); };
  const std::size_t begin = share(worker.index);
  if (!all_finite(values.subspan(begin, share(worker.index + 1) - begin))) found(layer);
}

void FiniteCheck::found(int layer) noexcept {
  int first = first_.load(std::memory_order_relaxed);
  while (layer < first && !first_.compare_exchange_weak(first, layer, std::memory_order_relaxed)) {
  }
}

ModelError not_finite(const model::Weights& weights, int layer) {
  for (const auto* const tensor : tensors_before(weights, layer)) {
    const std::int64_t row = bad_row(weights, *tensor);
    if (row >= 0) {
      return ModelError(fmt::format("{}: tensor {} has a value in row {} that is not a finite number", weights.path(),
                                    ggml_get_name(tensor), row));
    }
  }
  const bool is_end = layer == weights.hparams().n_layer;
  return ModelError(fmt::format(
      "{}: {} not finite although all weights up to there are: the values became too large", weights.path(),
      is_end ? std::string("the logits are") : fmt::format("the queries, keys or values of layer {} are", layer)));
}

}  // namespace winnow::network
