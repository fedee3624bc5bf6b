// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/primitives.h"

namespace winnow::device {

/// Rows of a lane, by elements. load() begins to get eight of them; pairs() makes of these four words with two numbers
/// each, as the products take them.
template <class T>
struct PlainRows {
  using Product = T;
  using Loaded = Words;

  const unsigned char* data;
  int dim;

  WINNOW_DEVICE PlainRows(const void* rows, const void* /*scales*/, int d)
      : data(static_cast<const unsigned char*>(rows)), dim(d) {}
  WINNOW_DEVICE Loaded load(int row, int at) const {
    return load16(data + (static_cast<std::size_t>(row) * dim + at) * 2);
  }
  WINNOW_DEVICE static Words pairs(const Loaded& loaded) { return loaded; }
};

/// The bits of a pair of f16 that stand for 1024, to which an integer below is added by setting low bits.
inline constexpr std::uint32_t kThousands = 0x64006400U;

WINNOW_DEVICE std::uint32_t scale_of(const unsigned char* scales, std::size_t element) {
  return load2(scales + element / 32 * 2) * 0x10001U;
}

struct Q8Rows {
  using Product = F16;
  struct Loaded {
    HalfWords bytes;
    std::uint32_t scale;
  };

  const unsigned char* data;
  const unsigned char* scales;
  int dim;

  WINNOW_DEVICE Q8Rows(const void* rows, const void* s, int d)
      : data(static_cast<const unsigned char*>(rows)), scales(static_cast<const unsigned char*>(s)), dim(d) {}
  WINNOW_DEVICE Loaded load(int row, int at) const {
    const std::size_t first = static_cast<std::size_t>(row) * dim + at;
    return {load8(data + first), scale_of(scales, first)};
  }
  WINNOW_DEVICE static Words pairs(const Loaded& loaded) {
    constexpr std::uint32_t kBias = 0x64806480U;  // 1024 + 128, twice
    Words v;
    WINNOW_UNROLL
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t shifted = loaded.bytes.w[i] ^ 0x80808080U;
      v.w[2 * i] = F16::scaled(bytes_of(shifted, kThousands, 0x5150), kBias, loaded.scale);
      v.w[2 * i + 1] = F16::scaled(bytes_of(shifted, kThousands, 0x5352), kBias, loaded.scale);
    }
    return v;
  }
};

struct Q4Rows {
  using Product = F16;
  struct Loaded {
    std::uint32_t nibbles;
    std::uint32_t scale;
  };

  const unsigned char* data;
  const unsigned char* scales;
  int dim;

  WINNOW_DEVICE Q4Rows(const void* rows, const void* s, int d)
      : data(static_cast<const unsigned char*>(rows)), scales(static_cast<const unsigned char*>(s)), dim(d) {}
  WINNOW_DEVICE Loaded load(int row, int at) const {
    const std::size_t first = static_cast<std::size_t>(row) * dim + at;
    return {load4(data + first / 2), scale_of(scales, first)};
  }
  WINNOW_DEVICE static Words pairs(const Loaded& loaded) {
    constexpr std::uint32_t kBias = 0x64086408U;  // 1024 + 8, twice
    Words v;
    WINNOW_UNROLL
    for (int i = 0; i < 4; ++i)
      v.w[i] = F16::scaled((loaded.nibbles >> 4 * i & 0x000f000fU) | kThousands, kBias, loaded.scale);
    return v;
  }
};

}  // namespace winnow::device
