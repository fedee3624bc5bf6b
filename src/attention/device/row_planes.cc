// SPDX-License-Identifier: Apache-2.0
#include "attention/device/row_planes.h"

#include <cstring>

namespace winnow::attention::device {

namespace {

constexpr std::size_t kBlock = 32;                     ///< elements with one scale
constexpr std::size_t kScale = sizeof(std::uint16_t);  ///< bytes

bool is_quantized(ElementType type) { return type == ElementType::q8_0 || type == ElementType::q4_0; }

/// Reorders a block of q4_0. In a lane, byte i holds elements i and i + 16.
void reorder_nibbles(const std::byte* from, std::byte* to) {
  const auto nibble = [from](std::size_t element) {
    const auto both = std::to_integer<unsigned>(from[element % (kBlock / 2)]);
    return element < kBlock / 2 ? both & 15U : both >> 4U;
  };
  for (std::size_t pair = 0; pair < kBlock / 2; ++pair) {
    // Byte i of a word of eight elements holds nibbles 2i and 2i + 1: elements 4i and 4i + 2, or from the second half
    // on 4i - 7 and 4i - 5.
    const std::size_t word = pair / 4 * 8;
    const std::size_t first = pair % 4 < 2 ? pair % 4 * 4 : pair % 4 * 4 - 7;
    to[pair] = static_cast<std::byte>(nibble(word + first) | nibble(word + first + 2) << 4U);
  }
}

}  // namespace

RowPlanes::RowPlanes(ElementType type, int dim) : type_(type), row_(cache::row_bytes(type, dim)) {
  const std::size_t blocks = is_quantized(type) ? (as_size(dim) + kBlock - 1) / kBlock : 0;
  scales_ = blocks * kScale;
  elements_ = row_ - scales_;
}

void RowPlanes::split(const std::byte* rows, int count, std::byte* elements, std::byte* scales) const {
  if (scales_ == 0) {
    std::memcpy(elements, rows, as_size(count) * row_);
    return;
  }
  const std::size_t blocks = as_size(count) * (scales_ / kScale);
  const std::size_t block = elements_ / (scales_ / kScale);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::byte* const from = rows + i * (kScale + block);
    std::memcpy(scales + i * kScale, from, kScale);
    if (type_ == ElementType::q4_0) {
      reorder_nibbles(from + kScale, elements + i * block);
    } else {
      std::memcpy(elements + i * block, from + kScale, block);
    }
  }
}

}  // namespace winnow::attention::device
