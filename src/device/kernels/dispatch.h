// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/kernels.h"
#include "device/kernels/primitives.h"

namespace winnow::device {

/// Calls call.operator()<D>() with the smallest compiled D >= dim.
template <class Call>
const char* for_dim(std::int32_t dim, Call call) {
  if (dim <= 0 || dim % 8 != 0 || dim > 256) return "a head's size must be a multiple of 8 up to 256";
  if (dim <= 64) return call.template operator()<64>();
  if (dim <= 128) return call.template operator()<128>();
  return call.template operator()<256>();
}

/// Calls call.operator()<T, D>() for rows of a scratch.
template <class Call>
const char* for_element_and_dim(Element element, std::int32_t dim, Call call) {
  return for_dim(dim, [&]<int D>() -> const char* {
    switch (element) {
      case Element::f16:
        return call.template operator()<F16, D>();
      case Element::bf16:
        return call.template operator()<Bf16, D>();
      default:
        return "rows of a scratch must be f16 or bf16";
    }
  });
}

}  // namespace winnow::device
