// SPDX-License-Identifier: Apache-2.0
#include "network/mixture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "base/as_size.h"
#include "base/worker.h"
#include "network/activation.h"
#include "network/chosen.h"
#include "network/expert_rows.h"
#include "network/routing.h"

namespace winnow::network {

namespace {

template <class T>
std::span<T> row_of(const ggml_tensor& x, std::int64_t row) {
  return {static_cast<T*>(x.data) + row * x.ne[0], as_size(x.ne[0])};
}

/// NaN is chosen last.
float rank(float logit) { return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit; }

/// The experts with the largest logits, largest first, without duplicates whatever the logits are.
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

/// Replaces logits by the router's scores.
void score(model::Gating gating, std::span<float> logits) {
  if (gating == model::Gating::sigmoid) {
    for (float& logit : logits) logit = 1 / (1 + std::exp(-logit));
    return;
  }
  const float largest = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (float& logit : logits) {
    logit = std::exp(logit - largest);
    sum += logit;
  }
  for (float& logit : logits) logit /= sum;
}

/// The router's scores of a row.
class Scores {
 public:
  Scores(model::Gating gating, std::span<const float> logits) : count_(logits.size()) {
    std::copy(logits.begin(), logits.end(), data_.begin());
    score(gating, all());
  }
  std::span<float> all() { return std::span(data_).first(count_); }

 private:
  std::array<float, model::kMostExperts> data_;
  std::size_t count_;
};

void norm(std::span<float> weights) {
  float sum = 0;
  for (const float weight : weights) sum += weight;
  for (float& weight : weights) weight /= std::max(sum, kLeastSum);
}

/// Scores rise with the logits, so they are only computed if a bias is added to them.
void choose_rows(ggml_tensor* out, int index, int count, void* routing) {
  const ggml_tensor* const bias = out->src[1];
  for (std::int64_t row = part(out->ne[1], index, count); row < part(out->ne[1], index + 1, count); ++row) {
    const auto logits = row_of<const float>(*out->src[0], row);
    const auto chosen = row_of<std::int32_t>(*out, row);
    if (bias == nullptr) {
      choose(logits, chosen);
      continue;
    }
    Scores scores(static_cast<const model::Routing*>(routing)->gating, logits);
    const auto added = row_of<const float>(*bias, 0);
    std::transform(added.begin(), added.end(), scores.all().begin(), scores.all().begin(), std::plus<>());
    choose(scores.all(), chosen);
  }
}

void weigh_rows(ggml_tensor* out, int index, int count, void* routing_pointer) {
  const auto& routing = *static_cast<const model::Routing*>(routing_pointer);
  const ggml_tensor* const of_experts = out->src[2];  // factors of the experts
  for (std::int64_t row = part(out->ne[1], index, count); row < part(out->ne[1], index + 1, count); ++row) {
    Scores scores(routing.gating, row_of<const float>(*out->src[0], row));
    const auto chosen = row_of<const std::int32_t>(*out->src[1], row);
    const auto weights = row_of<float>(*out, row);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = scores.all()[as_size(chosen[i])];
    if (routing.normed) norm(weights);
    for (std::size_t i = 0; of_experts != nullptr && i < weights.size(); ++i)
      weights[i] *= row_of<const float>(*of_experts, 0)[as_size(chosen[i])];
    if (routing.scale == 1) continue;
    for (float& weight : weights) weight *= routing.scale;
  }
}

/// Weighted sum of the outputs of a row's experts, [n_embd, k, rows]. Each thread adds some columns of all rows.
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

ggml_tensor* custom(ggml_context* context, ggml_type type, std::int64_t columns, std::int64_t rows,
                    std::span<ggml_tensor*> inputs, ggml_custom_op_t run, const model::Routing& routing) {
  return ggml_custom_4d(context, type, columns, rows, 1, 1, inputs.data(), static_cast<int>(inputs.size()), run,
                        GGML_N_TASKS_MAX, const_cast<model::Routing*>(&routing));
}

/// Gate and up of a combined tensor [2 n, …], in this order.
std::array<ggml_tensor*, 2> halves(ggml_context* context, ggml_tensor* both) {
  const auto half = [&](std::size_t i) {
    return ggml_view_3d(context, both, both->ne[0] / 2, both->ne[1], both->ne[2], both->nb[1], both->nb[2],
                        i * both->nb[1] / 2);
  };
  return {half(0), half(1)};
}

/// Feeds rows x through experts; `product` multiplies rows by matrices.
template <class Product>
ggml_tensor* passed(ggml_context* context, const model::Hparams& hparams, const model::ExpertWeights& e, ggml_tensor* x,
                    Product&& product) {
  ggml_tensor* const up = product(e.up, x);
  const auto [gate, gated] = e.gate.of_many_rows == nullptr ? halves(context, up) : std::array{product(e.gate, x), up};
  return product(e.down, activated(context, hparams.architecture->activation, gate, gated));
}

}  // namespace

ggml_tensor* mixture(ggml_context* context, Linear& products, const model::Hparams& hparams,
                     const model::LayerWeights& weights, const model::LayerSpec& layer, const RowsOfExperts& read) {
  const auto& e = weights.experts;
  const auto& routing = hparams.routing;
  ggml_tensor* const x = read.x;
  const std::int64_t rows = x->ne[1];
  ggml_tensor* logits = products.exact_product(context, e.router.weight, read.routed);
  if (e.router.bias != nullptr) logits = ggml_add_inplace(context, logits, e.router.bias);
  const auto outputs_of = [&](ggml_tensor* chosen) {
    Chosen experts(context, products.experts(), chosen);
    ggml_tensor* const input = ggml_reshape_3d(context, x, x->ne[0], 1, rows);
    return passed(context, hparams, e, input, [&](const auto& by, ggml_tensor* of) { return experts.product(by, of); });
  };
  if (products.is_on_device()) {
    const auto [chosen, shares] = route(context, routing, e, layer.n_expert_used, logits);
    return weighted_sum(context, outputs_of(chosen), shares);
  }
  ggml_tensor* choice[] = {logits, e.choice_bias};
  ggml_tensor* const chosen = custom(context, GGML_TYPE_I32, layer.n_expert_used, rows,
                                     std::span(choice).first(e.choice_bias == nullptr ? 1 : 2), choose_rows, routing);
  ggml_tensor* weighed[] = {logits, chosen, e.scales};
  ggml_tensor* const shares = custom(context, GGML_TYPE_F32, layer.n_expert_used, rows,
                                     std::span(weighed).first(e.scales == nullptr ? 2 : 3), weigh_rows, routing);
  if (products.later() != nullptr) return products.later()->keep(context, x, chosen, shares);
  ggml_tensor* sum[] = {outputs_of(chosen), shares};
  return custom(context, GGML_TYPE_F32, x->ne[0], rows, sum, add_up, routing);
}

ggml_tensor* expert(ggml_context* context, Linear& products, const model::Hparams& hparams,
                    const model::ExpertWeights& one, ggml_tensor* x) {
  return passed(context, hparams, one, x, [&](const model::ExpertMatrices& by, ggml_tensor* of) {
    ggml_tensor* const out = products.product(context, by.of_many_rows, of);
    return by.bias == nullptr ? out : ggml_add(context, out, by.bias);
  });
}

ggml_tensor* gated(ggml_context* context, Linear& products, ggml_tensor* rows, ggml_tensor* gate, ggml_tensor* x) {
  ggml_tensor* const logits = products.exact_product(context, ggml_reshape_2d(context, gate, gate->ne[0], 1), x);
  return ggml_mul_inplace(context, rows, ggml_sigmoid_inplace(context, logits));
}

}  // namespace winnow::network
