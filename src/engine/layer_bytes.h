// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"

namespace winnow::engine {

/// Bytes that were computed from the first tokens of a text, for each layer that stores keys and values: some of these
/// keys and values, or the state of an observer.
class LayerBytes {
 public:
  /// `sizes`: bytes of each layer. `purpose` names them in messages. Throws MemoryError.
  LayerBytes(MemoryAccount& account, std::span<const std::size_t> sizes, const char* purpose)
      : sizes_(sizes.begin(), sizes.end()), bytes_(account, bytes(sizes), purpose) {
    for (std::size_t i = 0; i < sizes.size(); ++i) places_.push_back(bytes(sizes.first(i)));
  }
  static std::size_t bytes(std::span<const std::size_t> sizes) {
    std::size_t out = 0;
    for (const std::size_t size : sizes) out += aligned(size);
    return out;
  }

  std::size_t bytes() const { return bytes_.size(); }
  /// Bytes of each layer.
  std::span<const std::size_t> sizes() const { return sizes_; }
  int layers() const { return static_cast<int>(sizes_.size()); }
  /// Aligned for numbers of any type.
  std::span<std::byte> layer(int layer) { return {bytes_.data() + places_[as_size(layer)], sizes_[as_size(layer)]}; }
  std::span<const std::byte> layer(int layer) const {
    return {bytes_.data() + places_[as_size(layer)], sizes_[as_size(layer)]};
  }

 private:
  static std::size_t aligned(std::size_t size) {
    return (size + alignof(double) - 1) / alignof(double) * alignof(double);
  }

  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> places_;
  Buffer bytes_;
};

using LayerBytesPtr = std::shared_ptr<const LayerBytes>;

}  // namespace winnow::engine
