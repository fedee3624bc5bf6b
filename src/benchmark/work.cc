// SPDX-License-Identifier: Apache-2.0
#include <ggml.h>

#include <algorithm>

#include "benchmark/roofline.h"
#include "engine/model_impl.h"

namespace winnow::benchmark {

namespace {

/// Of all matrices that a token passes through, without the embedding's lookup.
struct Matrices {
  double weights = 0;
  double bytes = 0;
};

void add(const ggml_tensor& matrix, Matrices& to) {
  to.weights += static_cast<double>(ggml_nelements(&matrix));
  to.bytes += static_cast<double>(ggml_nbytes(&matrix));
}

Matrices layers_of(const model::Weights& weights) {
  Matrices out;
  for (int l = 0; l < weights.hparams().n_layer; ++l) {
    for (const auto* const matrix : weights.layer(l).matrices()) add(*matrix, out);
  }
  return out;
}

Matrices output_of(const model::Weights& weights) {
  Matrices out;
  add(*weights.output().weight, out);
  return out;
}

}  // namespace

Work work_of_reading(const Model& model, int tokens, int depth) {
  const auto& weights = *model.impl().weights;
  const auto& h = weights.hparams();
  const Matrices layers = layers_of(weights);
  const Matrices output = output_of(weights);
  const double n = tokens;
  const double pairs = n * depth + n * (n + 1) / 2;
  double width = 0;
  for (int l = 0; l < h.n_layer; ++l) width += static_cast<double>(h.layer(l).n_head) * h.layer(l).head_dim;
  const double attention = 4.0 * width * pairs;
  return {2 * (layers.weights * n + output.weights) + attention, layers.bytes + output.bytes};
}

Work work_of_decoding(const Model& model, int steps, int batch, double kv_bytes) {
  const auto& weights = *model.impl().weights;
  const Matrices layers = layers_of(weights);
  const Matrices output = output_of(weights);
  return {2.0 * steps * batch * (layers.weights + output.weights), steps * (layers.bytes + output.bytes + kv_bytes)};
}

double least_seconds(const Work& work, const Roofline& roofline) {
  return std::max(work.operations / std::max(roofline.f32_rate, roofline.bf16_rate), work.bytes / roofline.bandwidth);
}

}  // namespace winnow::benchmark
