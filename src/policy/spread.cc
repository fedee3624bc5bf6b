// SPDX-License-Identifier: Apache-2.0
#include "winnow/policy/spread.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "policy/apportion.h"
#include "policy/top.h"

namespace winnow::policy {

namespace {

std::vector<int> blend(int mean, const Scores& scores, const AlwaysKept& always_kept, double floor) {
  const int total = mean * scores.heads();
  std::vector<double> shares;
  for (const int count : top_of_layer(scores, total, always_kept)) shares.push_back((1 - floor) * count + floor * mean);
  return apportion(shares, total);
}

std::vector<int> hard(int mean, Scores scores, const AlwaysKept& always_kept, double floor) {
  const int safe = static_cast<int>(std::floor(floor * mean));
  for (int head = 0; head < scores.heads(); ++head) {
    const auto of_head = scores.head(head);
    for (const auto j : top(of_head, safe, always_kept)) of_head[j] = std::numeric_limits<float>::infinity();
  }
  return top_of_layer(scores, mean * scores.heads(), always_kept);
}

}  // namespace

LayerBudgetPart pyramid(double beta) {
  return {fmt::format("falling linearly, the last layer's share a {}th of the mean", beta),
          [beta](int budget, int layers, int tokens, const AlwaysKept& always_kept) {
            const double mean = budget - always_kept.total();
            const double most = std::min(2 * mean - mean / beta, static_cast<double>(tokens - always_kept.total()));
            const double least = 2 * mean - most;
            std::vector<double> shares;
            for (int layer = 0; layer < layers; ++layer) {
              shares.push_back(layers == 1 ? mean : most - layer * (most - least) / (layers - 1));
            }
            auto out = apportion(shares, layers * (budget - always_kept.total()));
            for (int& x : out) x += always_kept.total();
            return out;
          }};
}

Option pyramid_option() { return {"beta", Option::Number{20, 1, 1e6}, "ratio of the mean share to the last layer's"}; }

HeadBudgetPart adaptive(double floor, FloorRule rule) {
  return {fmt::format("by the number of entries among the best of the layer, {} of it uniform{}", floor,
                      rule == FloorRule::hard ? " as each head's minimum" : ""),
          [floor, rule](const LayerView&, int mean, const Scores& scores, const AlwaysKept& always_kept) {
            return rule == FloorRule::hard ? hard(mean, scores, always_kept, floor)
                                           : blend(mean, scores, always_kept, floor);
          }};
}

std::vector<Option> adaptive_options() {
  return {{"floor", Option::Number{0.5, 0, 1}, "share of the budget that is divided equally among the heads"},
          {"floor-rule", Option::Choice{"blend", {"blend", "hard"}},
           "blend: the floor is mixed into each head's share; hard: it protects the head's best entries"}};
}

HeadBudgetPart adaptive(const Options& options) {
  return adaptive(options.number("floor"), options.text("floor-rule") == "hard" ? FloorRule::hard : FloorRule::blend);
}

}  // namespace winnow::policy
