#include "base/rope.h"

#include <cmath>

namespace winnow {

void Rope::shift(float* head, std::int64_t positions) const {
  if (positions == 0) return;
  const int pairs = static_cast<int>(frequency.size());
  const int step = pairing == Pairing::adjacent ? 2 : 1;
  const int partner = pairing == Pairing::adjacent ? 1 : pairs;
  for (int i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(positions) * static_cast<double>(frequency[static_cast<std::size_t>(i)]);
    const auto c = static_cast<float>(std::cos(angle));
    const auto s = static_cast<float>(std::sin(angle));
    float& x = head[i * step];
    float& y = head[i * step + partner];
    const float turned = x * c - y * s;
    y = x * s + y * c;
    x = turned;
  }
}

}  // namespace winnow
