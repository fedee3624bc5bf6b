// SPDX-License-Identifier: Apache-2.0
#include "documents/calibrate.h"

#include <algorithm>

#include "base/as_size.h"
#include "documents/facts.h"
#include "documents/select.h"

namespace winnow::documents {

namespace {

/// Sums of the ranks of each middle block's exponent over the layers, the smallest exponent first.
std::vector<int> rank_sums(const DocumentHead& head) {
  std::vector<int> sums(head.layout().middle());
  for (const auto& layer : head.layers) {
    for (std::size_t b = 0; b < sums.size(); ++b) {
      const auto before = [&](const Representative& other) {
        return other.exponent < layer.representatives[b].exponent;
      };
      sums[b] += static_cast<int>(std::count_if(layer.representatives.begin(), layer.representatives.end(), before));
    }
  }
  return sums;
}

}  // namespace

std::vector<int> layer_scores(std::span<const std::shared_ptr<const Document>> documents) {
  std::vector<int> scores;
  for (const auto& document : documents) {
    const auto& head = document->head();
    scores.resize(head.layers.size());
    const auto sums = rank_sums(head);
    if (sums.empty()) continue;
    const auto last_best = std::min_element(sums.rbegin(), sums.rend());
    const auto block = as_size(sums.rend() - last_best) - 1;
    for (std::size_t layer = 0; layer < scores.size(); ++layer) {
      const auto& all = head.layers[layer].representatives;
      const auto unusual = outliers(all, kOutlierFactor);
      scores[layer] += std::binary_search(unusual.begin(), unusual.end(), all[block].token) ? 1 : 0;
    }
  }
  return scores;
}

std::vector<std::vector<float>> exponents_of(const DocumentHead& head) {
  std::vector<std::vector<float>> out;
  for (const auto& layer : head.layers) {
    auto& of_layer = out.emplace_back();
    for (const auto& representative : layer.representatives) of_layer.push_back(representative.exponent);
  }
  return out;
}

/// One of n equal values that differs lies sqrt(n - 1) deviations from the mean, and none can lie higher.
bool is_long_enough(const BlockLayout& layout) { return layout.middle() - 1 > kOutlierFactor * kOutlierFactor; }

int deciding_layers(std::span<const int> scores) {
  const int layers = static_cast<int>(scores.size());
  int best = usual_deciding_layers(layers);
  double most = 0;
  int sum = 0;
  for (int count = 1; count <= std::max(1, layers / 2); ++count) {
    sum += scores[layers - count];
    const double mean = static_cast<double>(sum) / count;
    if (mean == 0 || mean < most) continue;
    most = mean;
    best = count;
  }
  return best;
}

}  // namespace winnow::documents
