// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"

namespace winnow::engine {

/// Bytes that were computed from the first tokens of a text, for each layer that stores keys and values, such as the
/// state of an observer.
class TextFact {
 public:
  /// `sizes`: bytes of each layer. Throws MemoryError.
  TextFact(MemoryAccount& account, std::span<const std::size_t> sizes)
      : sizes_(sizes.begin(), sizes.end()), bytes_(account, bytes(sizes), "facts about a text") {}
  static std::size_t bytes(std::span<const std::size_t> sizes) {
    std::size_t out = 0;
    for (const std::size_t size : sizes) out += aligned(size);
    return out;
  }

  std::size_t bytes() const { return bytes_.size(); }
  std::span<std::byte> layer(int layer) { return {bytes_.data() + place(layer), sizes_[as_size(layer)]}; }
  std::span<const std::byte> layer(int layer) const { return {bytes_.data() + place(layer), sizes_[as_size(layer)]}; }

 private:
  static std::size_t aligned(std::size_t size) {
    return (size + alignof(double) - 1) / alignof(double) * alignof(double);
  }
  std::size_t place(int layer) const { return bytes(std::span(sizes_).first(as_size(layer))); }

  std::vector<std::size_t> sizes_;
  Buffer bytes_;
};

using TextFactPtr = std::shared_ptr<const TextFact>;

}  // namespace winnow::engine
