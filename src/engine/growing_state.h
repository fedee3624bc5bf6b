// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "engine/layer_bytes.h"

namespace winnow::engine {

/// An observer's state that begins with the states after fewer rows, in pieces: one for each block of a text. Texts
/// with a common beginning share its pieces.
class GrowingState {
 public:
  /// `ends`: bytes in each layer after the first blocks, [0 … blocks][layer]. `pieces`: those of the first blocks.
  GrowingState(std::vector<std::vector<std::size_t>> ends, std::vector<LayerBytesPtr> pieces)
      : ends_(std::move(ends)), pieces_(std::move(pieces)) {}

  /// The state after the first `blocks` blocks in a layer. REQUIRES: pieces of these blocks.
  std::vector<std::byte> joined(int layer, int blocks) const;
  /// Cuts the next pieces from a state, as many as it has. Throws MemoryError.
  void add(MemoryAccount& account, const LayerBytes& state);
  /// [block]
  std::span<const LayerBytesPtr> pieces() const { return pieces_; }

 private:
  std::vector<std::vector<std::size_t>> ends_;
  std::vector<LayerBytesPtr> pieces_;
};

/// Bytes of a piece in each layer.
std::vector<std::size_t> piece_sizes(std::span<const std::size_t> begin, std::span<const std::size_t> end);

}  // namespace winnow::engine
