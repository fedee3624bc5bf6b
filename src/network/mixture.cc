// SPDX-License-Identifier: Apache-2.0
#include "network/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/as_size.h"
#include "base/worker.h"
#include "network/chosen.h"

namespace winnow::network {

namespace {

constexpr float kLeastSum = 0x1p-14F;  // of weights that are normed, as in llama.cpp

template <class T>
std::span<T> row_of(const ggml_tensor& x, std::int64_t row) {
  return {static_cast<T*>(x.data) + row * x.ne[0], as_size(x.ne[0])};
}

/// What is not a number is chosen last.
float rank(float logit) { return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit; }

/// The experts with the largest logits, in this order, each once whatever the logits are.
void choose(std::span<const float> logits, std::span<std::int32_t> chosen) {
  const auto is_before = [&](int one, int other) {
    const float a = rank(logits[as_size(one)]);
    const float b = rank(logits[as_size(other)]);
    return a > b || (a == b && one < other);
  };
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    int best = -1;
    for (int expert = 0; expert < static_cast<int>(logits.size()); ++expert) {
      if (i > 0 && !is_before(chosen[i - 1], expert)) continue;
      if (best < 0 || is_before(expert, best)) best = expert;
    }
    chosen[i] = best;
  }
}

/// Their shares of the softmax of all logits.
void weigh(std::span<const float> logits, std::span<const std::int32_t> chosen, std::span<float> weights) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::exp(logits[as_size(chosen[i])] - largest) / sum;
}

void norm(std::span<float> weights) {
  float sum = 0;
  for (const float weight : weights) sum += weight;
  for (float& weight : weights) weight /= std::max(sum, kLeastSum);
}

void choose_rows(ggml_tensor* out, int index, int count, void*) {
  for (std::int64_t row = part(out->ne[1], index, count); row < part(out->ne[1], index + 1, count); ++row)
    choose(row_of<const float>(*out->src[0], row), row_of<std::int32_t>(*out, row));
}

void weigh_rows(ggml_tensor* out, int index, int count, void* experts) {
  for (std::int64_t row = part(out->ne[1], index, count); row < part(out->ne[1], index + 1, count); ++row) {
    const auto weights = row_of<float>(*out, row);
    weigh(row_of<const float>(*out->src[0], row), row_of<const std::int32_t>(*out->src[1], row), weights);
    if (static_cast<const model::Experts*>(experts)->normed) norm(weights);
  }
}

/// The weighted sum of what the experts of a row give, [n_embd, k, rows]. Each thread adds some columns of all rows.
void add_up(ggml_tensor* out, int index, int count, void*) {
  const std::int64_t n = out->ne[0];
  const std::int64_t first = part(n, index, count);
  const std::int64_t last = part(n, index + 1, count);
  for (std::int64_t row = 0; row < out->ne[1]; ++row) {
    const auto weights = row_of<const float>(*out->src[1], row);
    const auto* from = static_cast<const float*>(out->src[0]->data) + row * std::ssize(weights) * n;
    float* const to = static_cast<float*>(out->data) + row * n;
    for (std::int64_t i = first; i < last; ++i) to[i] = weights[0] * from[i];
    for (std::size_t expert = 1; expert < weights.size(); ++expert) {
      from += n;
      for (std::int64_t i = first; i < last; ++i) to[i] += weights[expert] * from[i];
    }
  }
}

ggml_tensor* custom(ggml_context* context, ggml_type type, std::int64_t columns, std::span<ggml_tensor*> inputs,
                    ggml_custom_op_t run, const model::Experts& experts) {
  const std::int64_t rows = inputs.back()->ne[1];
  return ggml_custom_4d(context, type, columns, rows, 1, 1, inputs.data(), static_cast<int>(inputs.size()), run,
                        GGML_N_TASKS_MAX, const_cast<model::Experts*>(&experts));
}

}  // namespace

ggml_tensor* mixture(ggml_context* context, Linear& products, const model::Hparams& hparams,
                     const model::LayerWeights& weights, const model::LayerSpec& layer, ggml_tensor* x) {
  const auto& e = weights.experts;
  const auto& traits = hparams.architecture->experts;
  ggml_tensor* logits = products.exact_product(context, e.router, x);
  ggml_tensor* const chosen = custom(context, GGML_TYPE_I32, layer.n_expert_used, {&logits, 1}, choose_rows, traits);
  ggml_tensor* routed[] = {logits, chosen};
  ggml_tensor* const shares = custom(context, GGML_TYPE_F32, layer.n_expert_used, routed, weigh_rows, traits);
  Chosen experts(context, products.experts(), chosen);
  ggml_tensor* const input = ggml_reshape_3d(context, x, x->ne[0], 1, x->ne[1]);
  ggml_tensor* const up = experts.product(e.up, input);
  ggml_tensor* const activated = e.gate.of_many_rows == nullptr
                                     ? ggml_swiglu(context, up)
                                     : ggml_swiglu_split(context, experts.product(e.gate, input), up);
  ggml_tensor* sum[] = {experts.product(e.down, activated), shares};
  return custom(context, GGML_TYPE_F32, x->ne[0], sum, add_up, traits);
}

ggml_tensor* gated(ggml_context* context, Linear& products, ggml_tensor* rows, ggml_tensor* gate, ggml_tensor* x) {
  ggml_tensor* const logits = products.exact_product(context, ggml_reshape_2d(context, gate, gate->ne[0], 1), x);
  return ggml_mul_inplace(context, rows, ggml_sigmoid_inplace(context, logits));
}

}  // namespace winnow::network
