// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

#include <cmath>
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

/// Element e of a q4_0 row: with e taken within its word of eight, nibble e / 2 if e is even, else nibble 4 + e / 2.
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

std::vector<float> without_padding(Element element, const std::vector<float>& values, int dim) {
  const std::size_t stored = z(padded(element, dim));
  std::vector<float> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % stored < z(dim)) out.push_back(values[i]);
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
    const std::size_t scales = z(count) * z(padded(element, dim)) / 32;
    for (const float x : normal(random, scales)) out.scales.push_back(emulated::f16_of(x * one));
  } else if (element == Element::f32) {
    const auto numbers = normal(random, z(count) * z(dim));
    out.bytes.resize(numbers.size() * 4);
    std::memcpy(out.bytes.data(), numbers.data(), out.bytes.size());
  } else {
    const auto numbers = encoded(element, normal(random, z(count) * z(dim)));
    out.bytes.resize(numbers.bits.size() * 2);
    std::memcpy(out.bytes.data(), numbers.bits.data(), out.bytes.size());
  }
  out.values = without_padding(element, decoded(element, out.bytes, out.scales), dim);
  return out;
}

namespace {

std::vector<float> frequencies(int pairs) {
  std::vector<float> out;
  for (int i = 0; i < pairs; ++i) out.push_back(std::pow(10000.0F, -static_cast<float>(i) / static_cast<float>(pairs)));
  return out;
}

}  // namespace

Rotation::Rotation(int pairs, bool halves, int end)
    : halves_(halves),
      width_(pairs + 4),
      frequency_(frequencies(pairs)),
      coarse_(multiples(Angles::kFine, (end - 1) / Angles::kFine + 1)),
      fine_(multiples(1, Angles::kFine)) {}

std::vector<float> Rotation::multiples(int step, int count) const {
  std::vector<float> out(z(count) * 2 * z(width_));
  for (int i = 0; i < count; ++i) {
    for (std::size_t pair = 0; pair < frequency_.size(); ++pair) {
      const double angle = static_cast<double>(i) * step * static_cast<double>(frequency_[pair]);
      out[z(i) * 2 * z(width_) + pair] = static_cast<float>(std::cos(angle));
      out[(z(i) * 2 + 1) * z(width_) + pair] = static_cast<float>(std::sin(angle));
    }
  }
  return out;
}

Angles Rotation::angles() const {
  return {.coarse = coarse_.address(),
          .fine = fine_.address(),
          .pairs = static_cast<std::int32_t>(frequency_.size()),
          .width = width_,
          .halves = halves_ ? 1 : 0};
}

std::vector<float> Rotation::turned(std::span<const float> head, std::int64_t positions) const {
  return reference::rotated(head, frequency_, !halves_, positions);
}

}  // namespace winnow::device::test
