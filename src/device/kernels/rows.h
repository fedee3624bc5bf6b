// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/kernels/primitives.h"

namespace winnow::device {

/// Stored rows, read in octets of elements. load() begins to load kWidth elements. pairs() turns an octet of them into
/// four words with two numbers each, as factors of `Product`; numbers() converts it to f32.

/// Padding of quantized rows, in elements.
inline constexpr int kQuantized = 32;

template <class T>
struct PlainRows {
  using Product = T;
  using Loaded = Words;
  static constexpr int kWidth = 8;

  const unsigned char* data;
  int stride;

  WINNOW_DEVICE PlainRows(const void* rows, const void* /*scales*/, int dim)
      : data(static_cast<const unsigned char*>(rows)), stride(dim) {}
  WINNOW_DEVICE Loaded load(int row, int at) const {
    return load16(data + (static_cast<std::size_t>(row) * stride + at) * 2);
  }
  WINNOW_DEVICE static Words pairs(const Loaded& loaded, int /*octet*/) { return loaded; }
  WINNOW_DEVICE static void numbers(const Loaded& loaded, int /*octet*/, float (&x)[8]) {
    WINNOW_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = T::low(loaded.w[i]);
      x[2 * i + 1] = T::high(loaded.w[i]);
    }
  }
};

/// Rows of f32, which are split() into factors.
struct SingleRows {
  using Product = Bf16;
  struct Loaded {
    Words low, high;
  };
  static constexpr int kWidth = 8;

  const unsigned char* data;
  int stride;

  WINNOW_DEVICE SingleRows(const void* rows, const void* /*scales*/, int dim)
      : data(static_cast<const unsigned char*>(rows)), stride(dim) {}
  WINNOW_DEVICE Loaded load(int row, int at) const {
    const unsigned char* const from = data + (static_cast<std::size_t>(row) * stride + at) * 4;
    return {load16(from), load16(from + 16)};
  }
  WINNOW_DEVICE static void numbers(const Loaded& loaded, int /*octet*/, float (&x)[8]) {
    WINNOW_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[i] = float_of(loaded.low.w[i]);
      x[4 + i] = float_of(loaded.high.w[i]);
    }
  }
};

/// A pair of f16 1024: setting low bits adds an integer below 1024.
inline constexpr std::uint32_t kThousands = 0x64006400U;

/// Quantized rows: integers that are exact in f16, and a scale.
template <class Integers, int W>
struct ScaledRows {
  using Product = F16;
  static constexpr int kWidth = W;
  struct Loaded {
    typename Integers::template Bits<W> bits;
    std::uint32_t scale;  ///< in both halves
  };

  const unsigned char* data;
  const unsigned char* scales;
  int stride;

  WINNOW_DEVICE ScaledRows(const void* rows, const void* s, int dim)
      : data(static_cast<const unsigned char*>(rows)),
        scales(static_cast<const unsigned char*>(s)),
        stride((dim + kQuantized - 1) / kQuantized * kQuantized) {}
  WINNOW_DEVICE Loaded load(int row, int at) const {
    const std::size_t first = static_cast<std::size_t>(row) * stride + at;
    return {Integers::template load<W>(data, first), load2(scales + first / kQuantized * 2) * 0x10001U};
  }
  WINNOW_DEVICE static Words pairs(const Loaded& loaded, int octet) {
    Words v = Integers::octet(loaded.bits, octet);
    WINNOW_UNROLL
    for (std::uint32_t& pair : v.w) pair = F16::times(pair, loaded.scale);
    return v;
  }
  WINNOW_DEVICE static void numbers(const Loaded& loaded, int octet, float (&x)[8]) {
    const Words v = Integers::octet(loaded.bits, octet);
    const float scale = F16::low(loaded.scale);
    WINNOW_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = F16::low(v.w[i]) * scale;
      x[2 * i + 1] = F16::high(v.w[i]) * scale;
    }
  }
};

/// Bits of `Octets` octets, Words32 words each.
template <int Octets, int Words32>
struct OctetBits {
  std::uint32_t w[Octets * Words32];
};

struct Bytes {
  template <int W>
  using Bits = OctetBits<W / 8, 2>;

  template <int W>
  WINNOW_DEVICE static Bits<W> load(const unsigned char* data, std::size_t first) {
    if constexpr (W == 16) {
      const Words v = load16(data + first);
      return {{v.w[0], v.w[1], v.w[2], v.w[3]}};
    } else {
      const HalfWords v = load8(data + first);
      return {{v.w[0], v.w[1]}};
    }
  }
  template <class AllBits>
  WINNOW_DEVICE static Words octet(const AllBits& bits, int octet) {
    constexpr std::uint32_t kBias = 0x64806480U;  // 1024 + 128, in both halves
    Words v;
    WINNOW_UNROLL
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t shifted = bits.w[octet * 2 + i] ^ 0x80808080U;
      v.w[2 * i] = F16::minus(bytes_of(shifted, kThousands, 0x5150), kBias);
      v.w[2 * i + 1] = F16::minus(bytes_of(shifted, kThousands, 0x5352), kBias);
    }
    return v;
  }
};

struct Nibbles {
  template <int W>
  using Bits = OctetBits<W / 8, 1>;

  template <int W>
  WINNOW_DEVICE static Bits<W> load(const unsigned char* data, std::size_t first) {
    if constexpr (W == 16) {
      const HalfWords v = load8(data + first / 2);
      return {{v.w[0], v.w[1]}};
    } else {
      return {{load4(data + first / 2)}};
    }
  }
  template <class AllBits>
  WINNOW_DEVICE static Words octet(const AllBits& bits, int octet) {
    constexpr std::uint32_t kBias = 0x64086408U;  // 1024 + 8, in both halves
    Words v;
    WINNOW_UNROLL
    for (int i = 0; i < 4; ++i) v.w[i] = F16::minus((bits.w[octet] >> 4 * i & 0x000f000fU) | kThousands, kBias);
    return v;
  }
};

template <int W>
using Q8Rows = ScaledRows<Bytes, W>;
template <int W>
using Q4Rows = ScaledRows<Nibbles, W>;

/// Rounds two numbers, and returns the rounding errors as well.
template <class T>
WINNOW_DEVICE void split(float x, float y, std::uint32_t& rounded, std::uint32_t& rest) {
  rounded = T::pack(x, y);
  rest = T::pack(x - T::low(rounded), y - T::high(rounded));
}

template <class T>
WINNOW_DEVICE void split(const float (&x)[8], Words& rounded, Words& rest) {
  WINNOW_UNROLL
  for (int i = 0; i < 4; ++i) split<T>(x[2 * i], x[2 * i + 1], rounded.w[i], rest.w[i]);
}

/// An octet as factors of products: words, or the rounded numbers and their rounding errors.
template <class R>
struct Factors {
  static constexpr int kParts = 1;
  Words part[1];
  WINNOW_DEVICE void set(const typename R::Loaded& loaded, int octet) { part[0] = R::pairs(loaded, octet); }
};
template <>
struct Factors<SingleRows> {
  static constexpr int kParts = 2;
  Words part[2];
  WINNOW_DEVICE void set(const SingleRows::Loaded& loaded, int octet) {
    float x[8];
    SingleRows::numbers(loaded, octet, x);
    split<SingleRows::Product>(x, part[0], part[1]);
  }
};

}  // namespace winnow::device
