// SPDX-License-Identifier: Apache-2.0
#include "documents/calibrate.h"

#include <algorithm>

#include "base/as_size.h"
#include "documents/facts.h"
#include "documents/select.h"

namespace winnow::documents {

namespace {

/// Each middle block's rank by exponent, summed over layers. The block with the smallest exponent has rank 0.
std::vector<int> rank_sums(std::span<const std::vector<Representative>> layers) {
  std::vector<int> sums(layers.empty() ? 0 : layers.front().size());
  for (const auto& blocks : layers) {
    for (std::size_t b = 0; b < sums.size(); ++b) {
      const auto before = [&](const Representative& other) { return other.exponent < blocks[b].exponent; };
      sums[b] += static_cast<int>(std::count_if(blocks.begin(), blocks.end(), before));
    }
  }
  return sums;
}

}  // namespace

std::vector<bool> singling_out(std::span<const std::vector<Representative>> layers) {
  std::vector<bool> out(layers.size());
  const auto sums = rank_sums(layers);
  if (sums.empty()) return out;
  const auto last_best = std::min_element(sums.rbegin(), sums.rend());
  const auto block = as_size(sums.rend() - last_best) - 1;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const auto unusual = outliers(layers[layer], kOutlierFactor);
    out[layer] = std::binary_search(unusual.begin(), unusual.end(), layers[layer][block].token);
  }
  return out;
}

std::vector<int> layer_scores(std::span<const std::shared_ptr<const Document>> documents) {
  std::vector<int> scores;
  for (const auto& document : documents) {
    std::vector<std::vector<Representative>> layers;
    for (const auto& layer : document->head().layers) layers.push_back(layer.representatives);
    const auto singled_out = singling_out(layers);
    scores.resize(layers.size());
    for (std::size_t layer = 0; layer < layers.size(); ++layer) scores[layer] += singled_out[layer] ? 1 : 0;
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

bool is_long_enough(const BlockLayout& layout) { return layout.middle() - 1 > kOutlierFactor * kOutlierFactor; }

int least_tokens() {
  BlockLayout layout{1};
  while (!is_long_enough(layout)) layout.tokens += kBlock;
  return layout.tokens;
}

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
