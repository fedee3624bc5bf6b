// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// 16-bit numbers, rounded to nearest, ties to even.
namespace winnow::device::emulated {

inline std::uint16_t bf16_of(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((u + 0x7fffU + (u >> 16U & 1U)) >> 16U);
}

inline float from_f16(std::uint16_t h) {
  const std::uint32_t exponent = h >> 10U & 31U;
  const std::uint32_t fraction = h & 1023U;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = std::bit_cast<float>(0x7f800000U | fraction << 13U);
  } else if (exponent == 0) {
    magnitude = static_cast<float>(fraction) * 0x1p-24F;
  } else {
    magnitude = std::bit_cast<float>((exponent + 112U) << 23U | fraction << 13U);
  }
  return (h & 0x8000U) != 0 ? -magnitude : magnitude;
}

inline std::uint16_t f16_of(float x) {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16U & 0x8000U);
  const float magnitude = std::fabs(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x1p-14F)
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  const auto u = std::bit_cast<std::uint32_t>(magnitude);
  return static_cast<std::uint16_t>(sign | (u + 0xfffU + (u >> 13U & 1U) - (112U << 23U)) >> 13U);
}

}  // namespace winnow::device::emulated
