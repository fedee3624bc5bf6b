// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/base.h>

#include <cstddef>
#include <cstdint>

#include "base/tile_state.h"

// Tiles by inline assembly: GCC 12's intrinsics neither order tile loads after the stores that they depend on, nor keep
// the stores of the configuration.
#if HWY_ARCH_X86_64

namespace winnow {

/// Rows of a tile; also 32-bit elements of a row.
inline constexpr int kTileRows = 16;

/// Configures the thread's eight tiles as 16 rows of 64 bytes during its lifetime. REQUIRES: has_amx_bf16().
class TileScope {
 public:
  TileScope() {
    const Configuration own;
    asm volatile("ldtilecfg %0" ::"m"(own) : "memory");
  }

 private:
  struct Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {kTileRows, kTileRows, kTileRows, kTileRows, kTileRows, kTileRows, kTileRows, kTileRows};
  };
  static_assert(sizeof(Configuration) == 64);

  TileState before_;
};

/// `stride` in bytes.
template <int kTile>
HWY_INLINE void load_tile(const void* from, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
HWY_INLINE void store_tile(void* to, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
HWY_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

/// sum[m][n] += left[m][2k] right[k][2n] + left[m][2k + 1] right[k][2n + 1]
template <int kSum, int kLeft, int kRight>
HWY_INLINE void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
}

HWY_INLINE void zero_0123() {
  zero_tile<0>();
  zero_tile<1>();
  zero_tile<2>();
  zero_tile<3>();
}

}  // namespace winnow

#else

namespace winnow {

class TileScope {};  // never constructed: has_amx_bf16() is false

}  // namespace winnow

#endif
