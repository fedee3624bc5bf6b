#include "policy/step.h"

#include <cmath>

namespace winnow::policy {

void group_mean(const StepView& view, int kv_head, std::vector<float>& out) {
  const int group = view.shape.group();
  out.assign(static_cast<std::size_t>(view.lanes.length(kv_head)), 0.0F);
  for (int g = 0; g < group; ++g) {
    const auto attention = view.attention(kv_head * group + g);
    for (std::size_t slot = 0; slot < out.size(); ++slot) out[slot] += attention[slot];
  }
  for (float& x : out) x /= static_cast<float>(group);
}

bool worse(float a, std::int32_t p, float b, std::int32_t q) {
  if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
  return a != b && !std::isnan(a) ? a < b : p < q;
}

}  // namespace winnow::policy
