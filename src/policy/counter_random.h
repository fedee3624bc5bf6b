// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace winnow::policy {

/// Uniform in [0, 1). A function of its arguments alone, so that a seed gives the same result on any machine and in any
/// order. SplitMix64's finaliser (Steele, Lea and Flood, 2014) over a running sum of the coordinates.
inline double uniform_at(std::uint64_t seed, int layer, int head, int position) {
  std::uint64_t x = seed;
  for (const int part : {layer, head, position}) {
    x += 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(static_cast<std::uint32_t>(part)) + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    x ^= x >> 31;
  }
  return static_cast<double>(x >> 11) * 0x1p-53;
}

}  // namespace winnow::policy
