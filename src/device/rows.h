// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/primitives.h"

namespace winnow::device {

/// Rows of a lane, by elements. load() gives eight of them, pairs in four words, as the products take them.
template <class T>
struct PlainRows {
  using Product = T;

  const unsigned char* data;
  int dim;

  WINNOW_DEVICE PlainRows(const void* rows, const void* /*scales*/, int d)
      : data(static_cast<const unsigned char*>(rows)), dim(d) {}
  WINNOW_DEVICE Words load(int row, int at) const {
    return load16(data + (static_cast<std::size_t>(row) * dim + at) * 2);
  }
};

/// The bytes of pairs of f16 that stand for 1024 and an integer below.
inline constexpr std::uint32_t kThousands = 0x64006400U;

struct Q8Rows {
  using Product = F16;

  const unsigned char* data;
  const unsigned char* scales;
  int dim;

  WINNOW_DEVICE Q8Rows(const void* rows, const void* s, int d)
      : data(static_cast<const unsigned char*>(rows)), scales(static_cast<const unsigned char*>(s)), dim(d) {}
  WINNOW_DEVICE Words load(int row, int at) const {
    const std::size_t first = static_cast<std::size_t>(row) * dim + at;
    const HalfWords bytes = load8(data + first);
    const std::uint32_t scale = *reinterpret_cast<const std::uint16_t*>(scales + first / 32 * 2) * 0x10001U;
    constexpr std::uint32_t kBias = 0x64806480U;  // 1024 + 128, twice
    Words v;
    WINNOW_UNROLL
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t shifted = bytes.w[i] ^ 0x80808080U;
      v.w[2 * i] = F16::scaled(bytes_of(shifted, kThousands, 0x5150), kBias, scale);
      v.w[2 * i + 1] = F16::scaled(bytes_of(shifted, kThousands, 0x5352), kBias, scale);
    }
    return v;
  }
};

struct Q4Rows {
  using Product = F16;

  const unsigned char* data;
  const unsigned char* scales;
  int dim;

  WINNOW_DEVICE Q4Rows(const void* rows, const void* s, int d)
      : data(static_cast<const unsigned char*>(rows)), scales(static_cast<const unsigned char*>(s)), dim(d) {}
  WINNOW_DEVICE Words load(int row, int at) const {
    const std::size_t first = static_cast<std::size_t>(row) * dim + at;
    const std::uint32_t nibbles = load4(data + first / 2);
    const std::uint32_t scale = *reinterpret_cast<const std::uint16_t*>(scales + first / 32 * 2) * 0x10001U;
    constexpr std::uint32_t kBias = 0x64086408U;  // 1024 + 8, twice
    Words v;
    WINNOW_UNROLL
    for (int i = 0; i < 4; ++i) v.w[i] = F16::scaled((nibbles >> 4 * i & 0x000f000fU) | kThousands, kBias, scale);
    return v;
  }
};

}  // namespace winnow::device
