// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <numeric>

#include "base/as_size.h"
#include "winnow/policy/layer.h"

namespace winnow::policy {

float LayerCalibration::score(int kv_head, const float* row) const {
  constexpr std::size_t kTogether = 16;  // sums that do not wait for each other
  const std::size_t width = weights.size() / bias.size();
  const float* const w = weights.data() + as_size(kv_head) * width;
  std::array<float, kTogether> sums{};
  std::size_t i = 0;
  for (; i + kTogether <= width; i += kTogether) {
    for (std::size_t k = 0; k < kTogether; ++k) sums[k] += w[i + k] * row[i + k];
  }
  for (; i < width; ++i) sums[0] += w[i] * row[i];
  return std::accumulate(sums.begin(), sums.end(), bias[as_size(kv_head)]);
}

}  // namespace winnow::policy
