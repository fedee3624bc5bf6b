// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>

namespace winnow {

/// A count or an index as a size. Tokens, heads, layers and slots are `int`: files and prompts with more of them are
/// refused. An int goes into brackets as it is. This is for what may become larger than an int, such as bytes and
/// products of counts. REQUIRES: n >= 0.
template <std::integral Integer>
constexpr std::size_t as_size(Integer n) {
  if constexpr (std::signed_integral<Integer>) assert(n >= 0);
  return static_cast<std::size_t>(n);
}

}  // namespace winnow
