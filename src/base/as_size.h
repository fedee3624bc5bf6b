// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>

namespace winnow {

/// A count or an index as a size. Numbers of tokens, heads, layers and slots are `int` (larger files and prompts are
/// refused), and can be used as indices directly. as_size() is for values that may exceed an int, such as bytes and
/// products of counts. REQUIRES: n >= 0.
template <std::integral Integer>
constexpr std::size_t as_size(Integer n) {
  if constexpr (std::signed_integral<Integer>) assert(n >= 0);
  return static_cast<std::size_t>(n);
}

}  // namespace winnow
