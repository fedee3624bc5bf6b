// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/as_size.h"

namespace winnow::eval {

/// Random numbers that depend only on the seed and the purpose, and are the same on every machine (those of the
/// standard's distributions are not). SplitMix64 (Steele, Lea and Flood, 2014). A copy continues the same sequence.
class Random {
 public:
  Random(std::uint32_t seed, std::string_view what, int number);

  std::uint64_t next();
  /// A number in 0 … n - 1. REQUIRES: n > 0.
  int below(int n);
  /// `count` different numbers in 0 … n - 1, in any order. REQUIRES: count <= n.
  std::vector<int> distinct(int count, int n);

  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t left = all.size(); left > 1; --left)
      std::swap(all[left - 1], all[as_size(below(static_cast<int>(left)))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace winnow::eval
