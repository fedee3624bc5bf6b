// SPDX-License-Identifier: Apache-2.0
#include "engine/precision.h"

#include <algorithm>

namespace winnow::engine {

attention::ComputeType compute_type_of(Precision precision) {
  using attention::ComputeType;
  return precision != Precision::f32 && attention::supports(ComputeType::bf16) ? ComputeType::bf16 : ComputeType::f32;
}

ElementType scratch_type(Precision precision, std::span<const CacheOptions> caches) {
  if (precision == Precision::f32) return ElementType::f32;
  const auto all = [&](auto&& fits) {
    return std::ranges::all_of(caches,
                               [&](const CacheOptions& c) { return fits(c.kv_type.key) && fits(c.kv_type.value); });
  };
  if (all([](ElementType t) { return t == ElementType::f16 || t == ElementType::q8_0 || t == ElementType::q4_0; })) {
    return ElementType::f16;
  }
  if (all([](ElementType t) { return t == ElementType::bf16; })) return ElementType::bf16;
  return ElementType::f32;
}

}  // namespace winnow::engine
