// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

#include <cstring>

namespace winnow::device::test {
namespace {

float number_of(Element element, const std::uint8_t* at) {
  if (element == Element::f32) {
    float x = 0;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return element == Element::f16 ? emulated::from_f16(bits) : std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

/// Element e of a row of q4_0: nibble e / 2 of its word of eight if e is even, else nibble 4 + e / 2.
int nibble_of(const std::vector<std::uint8_t>& bytes, std::size_t e) {
  const std::size_t nibble = e % 8 / 2 + e % 2 * 4;
  return bytes[e / 8 * 4 + nibble / 2] >> (nibble % 2 * 4) & 15;
}

}  // namespace

std::vector<float> decoded(Element element, const std::vector<std::uint8_t>& bytes,
                           const std::vector<std::uint16_t>& scales) {
  std::vector<float> out;
  switch (element) {
    case Element::q8_0:
      for (std::size_t e = 0; e < bytes.size(); ++e) {
        out.push_back(static_cast<float>(static_cast<std::int8_t>(bytes[e])) * emulated::from_f16(scales[e / 32]));
      }
      break;
    case Element::q4_0:
      for (std::size_t e = 0; e < bytes.size() * 2; ++e) {
        out.push_back(static_cast<float>(nibble_of(bytes, e) - 8) * emulated::from_f16(scales[e / 32]));
      }
      break;
    default: {
      const std::size_t size = element == Element::f32 ? 4 : 2;
      for (std::size_t at = 0; at < bytes.size(); at += size) out.push_back(number_of(element, &bytes[at]));
    }
  }
  return out;
}

Rows random_rows(std::mt19937& random, Element element, int count, int dim) {
  Rows out;
  if (is_quantized(element)) {
    for (std::size_t i = 0; i < z(count) * bytes_of(element, dim); ++i) {
      out.bytes.push_back(static_cast<std::uint8_t>(random()));
    }
    const float one = element == Element::q8_0 ? 1.0F / 64 : 0.25F;
    for (const float x : normal(random, z(count) * z(dim) / 32)) out.scales.push_back(emulated::f16_of(x * one));
  } else {
    const auto numbers = encoded(element, normal(random, z(count) * z(dim)));
    out.bytes.resize(numbers.bits.size() * 2);
    std::memcpy(out.bytes.data(), numbers.bits.data(), out.bytes.size());
  }
  out.values = decoded(element, out.bytes, out.scales);
  return out;
}

}  // namespace winnow::device::test
