// SPDX-License-Identifier: Apache-2.0
#include <ggml.h>

#include <algorithm>

#include "benchmark/roofline.h"
#include "engine/model_impl.h"

namespace winnow::benchmark {

namespace {

/// Sizes of all matrices that a token is multiplied by, which excludes the embedding.
struct Matrices {
  double weights = 0;
  double bytes = 0;
};

/// Adds a matrix, or the part of several that a token uses.
void add(const ggml_tensor& matrix, Matrices& to, double part = 1) {
  to.weights += part * static_cast<double>(ggml_nelements(&matrix));
  to.bytes += part * static_cast<double>(ggml_nbytes(&matrix));
}

/// Adds the experts. A token uses those that it has chosen, and all tokens may choose the same.
void add(const model::ExpertWeights& experts, const model::LayerSpec& layer, Matrices& to) {
  if (experts.router.weight == nullptr) return;
  add(*experts.router.weight, to);
  const double part = static_cast<double>(layer.n_expert_used) / layer.n_expert;
  for (const auto* const matrices : {&experts.gate, &experts.up, &experts.down}) {
    if (matrices->of_many_rows != nullptr) add(*matrices->of_many_rows, to, part);
  }
}

Matrices layers_of(const model::Weights& weights) {
  Matrices out;
  for (int l = 0; l < weights.hparams().n_layer; ++l) {
    for (const auto* const matrix : weights.layer(l).matrices()) add(*matrix, out);
    add(weights.layer(l).experts, weights.hparams().layer(l), out);
  }
  return out;
}

Matrices output_of(const model::Weights& weights) {
  Matrices out;
  add(*weights.output().weight, out);
  return out;
}

/// Number of pairs of a query and a key that it sees, for `tokens` tokens after `depth` others.
double pairs_of(int tokens, int depth, int window) {
  const auto all = [](double n) { return n * (n + 1) / 2; };
  const double end = static_cast<double>(depth) + tokens;
  const auto hidden = [&](double n) { return window > 0 && n > window ? all(n - window) : 0; };
  return all(end) - all(depth) - (hidden(end) - hidden(depth));
}

}  // namespace

Work work_of_reading(const Model& model, int tokens, int depth) {
  const auto& weights = engine::weights_of(model);
  const auto& h = weights.hparams();
  const Matrices layers = layers_of(weights);
  const Matrices output = output_of(weights);
  const double n = tokens;
  double attention = 0;
  for (int l = 0; l < h.n_layer; ++l) {
    const auto& spec = h.layer(l);
    attention += 4.0 * spec.n_head * spec.head_dim * pairs_of(tokens, depth, spec.window);
  }
  return {2 * (layers.weights * n + output.weights) + attention, layers.bytes + output.bytes};
}

Work work_of_decoding(const Model& model, int steps, int batch, double kv_bytes) {
  const auto& weights = engine::weights_of(model);
  const Matrices layers = layers_of(weights);
  const Matrices output = output_of(weights);
  return {2.0 * steps * batch * (layers.weights + output.weights), steps * (layers.bytes + output.bytes + kv_bytes)};
}

double least_seconds(const Work& work, const Roofline& roofline) {
  return std::max(work.operations / std::max(roofline.f32_rate, roofline.bf16_rate), work.bytes / roofline.bandwidth);
}

}  // namespace winnow::benchmark
