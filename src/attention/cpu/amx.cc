// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/amx.h"

#include <hwy/base.h>

#include <cstddef>
#include <cstdint>

#include "attention/cpu/bf16_product.h"
#include "base/cpu.h"
#include "base/tiles.h"

#if HWY_ARCH_X86_64

namespace winnow::attention::cpu {

namespace {

HWY_INLINE void load_0123(const float* from) {
  load_tile<0>(from, kStrip * 4);
  load_tile<1>(from + kTileRows, kStrip * 4);
  load_tile<2>(from + kTileRows * kStrip, kStrip * 4);
  load_tile<3>(from + kTileRows * kStrip + kTileRows, kStrip * 4);
}

HWY_INLINE void store_0123(float* to) {
  store_tile<0>(to, kStrip * 4);
  store_tile<1>(to + kTileRows, kStrip * 4);
  store_tile<2>(to + kTileRows * kStrip, kStrip * 4);
  store_tile<3>(to + kTileRows * kStrip + kTileRows, kStrip * 4);
}

/// Adds products of 32 rows and a strip to tiles 0 … 3.
HWY_INLINE void multiply_into_0123(const std::uint16_t* left, const std::uint32_t* right, int depth) {
  const std::ptrdiff_t row = depth * static_cast<std::ptrdiff_t>(sizeof(*left));
  const std::uint16_t* const lower = left + static_cast<std::ptrdiff_t>(kTileRows) * depth;
  for (int k = 0; k < depth; k += kDepth) {
    const std::uint32_t* const pairs = right + static_cast<std::ptrdiff_t>(k / 2) * kStrip;
    load_tile<4>(left + k, row);
    load_tile<5>(lower + k, row);
    load_tile<6>(pairs, kStrip * 4);
    load_tile<7>(pairs + kTileRows, kStrip * 4);
    multiply_tiles<0, 4, 6>();
    multiply_tiles<1, 4, 7>();
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
}

}  // namespace

AmxScope::AmxScope(ComputeType compute_type) {
  if (compute_type == ComputeType::bf16 && has_amx_bf16()) tiles_.emplace();
}

void multiply_by_tiles(const StripProduct& p, Start start) {
  for (int row = 0; row < p.rows; row += 2 * kTileRows) {
    float* const sums = p.sums + static_cast<std::ptrdiff_t>(row) * kStrip;
    if (start == Start::from_zero) {
      zero_0123();
    } else {
      load_0123(sums);
    }
    multiply_into_0123(p.left + static_cast<std::ptrdiff_t>(row) * p.depth, p.right, p.depth);
    store_0123(sums);
  }
}

}  // namespace winnow::attention::cpu

#else

namespace winnow::attention::cpu {

AmxScope::AmxScope(ComputeType) {}
void multiply_by_tiles(const StripProduct&, Start) {}

}  // namespace winnow::attention::cpu

#endif
