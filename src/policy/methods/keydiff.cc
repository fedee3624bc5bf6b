// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

/// Mean direction of the keys, [d]. Keys of length 0 are left out.
std::vector<double> mean_direction(const LayerView& view, int head) {
  std::vector<double> mean(view.shape.head_dim);
  for_each_key(view, head, [&](int, std::span<const float> key) {
    const double length = norm(key);
    if (!(length > 0)) return;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += key[i] / length / view.tokens();
  });
  return mean;
}

Scores unlike_the_others(const LayerView& view, const AlwaysKept& /*always_kept*/) {
  Scores scores(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < scores.heads(); ++head) {
    const auto mean = mean_direction(view, head);
    const double length = std::sqrt(std::inner_product(mean.begin(), mean.end(), mean.begin(), 0.0));
    for_each_key(view, head, [&](int j, std::span<const float> key) {
      const double lengths = norm(key) * length;
      const double cosine = lengths > 0 ? std::inner_product(key.begin(), key.end(), mean.begin(), 0.0) / lengths : 0;
      scores.head(head)[j] = -static_cast<float>(cosine);
    });
  }
  return scores;
}

}  // namespace

/// KeyDiff (Park et al., 2025, "KeyDiff: Key Similarity-Based KV Cache Eviction for Long-Context LLM Inference",
/// section 3): keys that differ from the mean direction get attention. Compares rotated keys. No options.
Preset keydiff() {
  return {.name = "keydiff",
          .summary = "keeps the entries whose keys are least like the others",
          .paper = "Park et al. 2025, KeyDiff: Key Similarity-Based KV Cache Eviction for Long-Context LLM Inference",
          .options = {},
          .build = [](const Options&) {
            Method method;
            rank_by(method, "minus the cosine with the mean direction of all keys", 0, unlike_the_others);
            method.selection.signed_scores = true;
            return method;
          }};
}

}  // namespace winnow::policy::methods
