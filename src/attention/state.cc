// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/attention.h"

namespace winnow::attention {

void merge(PartialState& into, const PartialState& other) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const float m = std::max(into.m, other.m);
  if (m == kNothing) return;  // neither has seen a key
  const float keep = std::exp(into.m - m);
  const float add = std::exp(other.m - m);
  into.m = m;
  into.d = into.d * keep + other.d * add;
  for (std::size_t i = 0; i < into.o.size(); ++i) into.o[i] = into.o[i] * keep + other.o[i] * add;
}

}  // namespace winnow::attention
