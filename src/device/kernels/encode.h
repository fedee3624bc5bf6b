// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/kernels.h"
#include "device/kernels/rows.h"

namespace winnow::device {

WINNOW_DEVICE bool is_scaled(Element element) { return element == Element::q8_0 || element == Element::q4_0; }
WINNOW_DEVICE float magnitude(float x) { return x < 0 ? -x : x; }

WINNOW_DEVICE bool are_finite(const float (&x)[8]) {
  bool all = true;
  WINNOW_UNROLL
  for (const float e : x) all = all && magnitude(e) <= 3.4028234e38F;
  return all;
}

template <class R>
WINNOW_DEVICE constexpr Element element_of() {
  if constexpr (std::is_same_v<R, Q8Rows<8>>) return Element::q8_0;
  if constexpr (std::is_same_v<R, Q4Rows<8>>) return Element::q4_0;
  if constexpr (std::is_same_v<R, PlainRows<F16>>) return Element::f16;
  if constexpr (std::is_same_v<R, PlainRows<Bf16>>) return Element::bf16;
  return Element::f32;
}

/// Destination of an octet: rows, scales, and the index of its first element in these rows.
struct RowPlace {
  void* rows;
  void* scales;
  std::size_t element;
  bool is_written;

  template <class T>
  WINNOW_DEVICE void put(const T& value) const {
    if (is_written) *reinterpret_cast<T*>(static_cast<unsigned char*>(rows) + element / 8 * sizeof(T)) = value;
  }
  /// Writes the scale of a block of 32 elements; done by the first of its four lanes.
  WINNOW_DEVICE void put_scale(std::uint32_t bits) const {
    if (is_written && element % kQuantized == 0)
      static_cast<std::uint16_t*>(scales)[element / kQuantized] = static_cast<std::uint16_t>(bits);
  }
};

/// Copies an octet unchanged.
template <class Loaded>
WINNOW_DEVICE void copy_octet(const RowPlace& to, const Loaded& loaded) {
  if constexpr (requires { loaded.scale; }) {
    to.put(loaded.bits);
    to.put_scale(loaded.scale & 0xffffU);
  }
}

struct alignas(16) SingleOctet {
  float x[8];
};

/// REQUIRES: called by the four adjacent lanes that have the octets of a block of 32.
WINNOW_DEVICE void encode_q8(const RowPlace& to, const float (&x)[8]) {
  float most = 0;
  WINNOW_UNROLL
  for (const float e : x) most = magnitude(e) > most ? magnitude(e) : most;
  WINNOW_UNROLL
  for (int lanes = 1; lanes < 4; lanes *= 2) {
    const float other = shuffle_xor(most, lanes);
    most = other > most ? other : most;
  }
  const float scale = most / 127;
  const float by = scale > 0 ? 1 / scale : 0;
  HalfWords out = {};
  WINNOW_UNROLL
  for (int i = 0; i < 8; ++i)
    out.w[i / 4] |= (static_cast<std::uint32_t>(static_cast<int>(roundf(x[i] * by))) & 0xffU) << i % 4 * 8;
  to.put(out);
  to.put_scale(F16::pack(scale, 0));
}

/// The first element of the largest magnitude becomes -8.
WINNOW_DEVICE void encode_q4(const RowPlace& to, const float (&x)[8]) {
  float most = x[0];
  WINNOW_UNROLL
  for (const float e : x) most = magnitude(e) > magnitude(most) ? e : most;
  auto place = static_cast<float>(thread() % 4);
  WINNOW_UNROLL
  for (int lanes = 1; lanes < 4; lanes *= 2) {
    const float other = shuffle_xor(most, lanes);
    const float there = shuffle_xor(place, lanes);
    const bool more = magnitude(other) > magnitude(most) || (magnitude(other) == magnitude(most) && there < place);
    most = more ? other : most;
    place = more ? there : place;
  }
  const float scale = most / -8;
  const float by = scale != 0 ? 1 / scale : 0;
  std::uint32_t word = 0;
  WINNOW_UNROLL
  for (int e = 0; e < 8; ++e) {
    const auto n = static_cast<int>(x[e] * by + 8.5F);
    word |= static_cast<std::uint32_t>(n < 15 ? n : 15) << 4 * (e / 2 + e % 2 * 4);
  }
  to.put(word);
  to.put_scale(F16::pack(scale, 0));
}

/// REQUIRES: called by whole warps if the element has scales.
WINNOW_DEVICE void encode_octet(Element element, const RowPlace& to, const float (&x)[8]) {
  switch (element) {
    case Element::f32: {
      SingleOctet out;
      WINNOW_UNROLL
      for (int i = 0; i < 8; ++i) out.x[i] = x[i];
      return to.put(out);
    }
    case Element::f16: {
      Words out;
      WINNOW_UNROLL
      for (int i = 0; i < 4; ++i) out.w[i] = F16::pack(x[2 * i], x[2 * i + 1]);
      return to.put(out);
    }
    case Element::bf16: {
      Words out;
      WINNOW_UNROLL
      for (int i = 0; i < 4; ++i) out.w[i] = Bf16::pack(x[2 * i], x[2 * i + 1]);
      return to.put(out);
    }
    case Element::q8_0:
      return encode_q8(to, x);
    case Element::q4_0:
      return encode_q4(to, x);
  }
}

}  // namespace winnow::device
