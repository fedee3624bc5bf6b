// SPDX-License-Identifier: Apache-2.0
#include "network/routing.h"

#include <limits>

#include "base/as_size.h"
#include "network/mixture.h"

namespace winnow::network {

namespace {

/// Elements of per-expert values [n_expert, rows] that were chosen: [1, k, rows].
ggml_tensor* of_chosen(ggml_context* context, ggml_tensor* values, ggml_tensor* chosen) {
  return ggml_get_rows(context, ggml_reshape_3d(context, values, 1, values->ne[0], values->ne[1]), chosen);
}

/// Weights [1, k, rows] divided by their sums.
ggml_tensor* normed(ggml_context* context, ggml_tensor* weights) {
  ggml_tensor* const rows = ggml_reshape_2d(context, weights, weights->ne[1], weights->ne[2]);
  ggml_tensor* const sums =
      ggml_clamp(context, ggml_sum_rows(context, rows), kLeastSum, std::numeric_limits<float>::infinity());
  return ggml_reshape_3d(context, ggml_div(context, rows, sums), 1, weights->ne[1], weights->ne[2]);
}

}  // namespace

Routed route(ggml_context* context, const model::Routing& routing, const model::ExpertWeights& experts, int k,
             ggml_tensor* logits) {
  const bool is_sigmoid = routing.gating == model::Gating::sigmoid;
  ggml_tensor* const scores = is_sigmoid ? ggml_sigmoid(context, logits) : ggml_soft_max(context, logits);
  ggml_tensor* const ranked = experts.choice_bias == nullptr ? scores : ggml_add(context, scores, experts.choice_bias);
  ggml_tensor* const chosen = ggml_argsort_top_k(context, ranked, k);
  ggml_tensor* shares = of_chosen(context, scores, chosen);
  if (routing.normed) shares = normed(context, shares);
  if (experts.scales != nullptr) {
    ggml_tensor* const scales = ggml_repeat_4d(context, experts.scales, scores->ne[0], scores->ne[1], 1, 1);
    shares = ggml_mul(context, shares, of_chosen(context, scales, chosen));
  }
  if (routing.scale != 1) shares = ggml_scale(context, shares, routing.scale);
  return {chosen, shares};
}

ggml_tensor* weighted_sum(ggml_context* context, ggml_tensor* outputs, ggml_tensor* shares) {
  ggml_tensor* const weighted = ggml_mul(context, outputs, shares);
  const auto of_expert = [&](std::int64_t i) {
    return ggml_view_2d(context, weighted, weighted->ne[0], weighted->ne[2], weighted->nb[2],
                        as_size(i) * weighted->nb[1]);
  };
  ggml_tensor* sum = of_expert(0);
  for (std::int64_t i = 1; i < weighted->ne[1]; ++i) sum = ggml_add(context, sum, of_expert(i));
  return weighted->ne[1] == 1 ? ggml_cont(context, sum) : sum;
}

int routing_nodes(int k) {
  constexpr int kChoice = 20;
  return 2 * k + kChoice;
}

}  // namespace winnow::network
