// SPDX-License-Identifier: Apache-2.0
#include "eval/random.h"

#include <numeric>
#include <span>

#include "base/hash.h"

namespace winnow::eval {

Random::Random(std::uint32_t seed, std::string_view what, int number)
    : state_(winnow::hash_of(std::as_bytes(std::span(what)),
                             (static_cast<std::uint64_t>(seed) << 32) | static_cast<std::uint32_t>(number))) {}

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

int Random::below(int n) { return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32); }

std::vector<int> Random::distinct(int count, int n) {
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  for (int i = 0; i < count; ++i) std::swap(all[i], all[i + below(n - i)]);
  all.resize(count);
  return all;
}

}  // namespace winnow::eval
